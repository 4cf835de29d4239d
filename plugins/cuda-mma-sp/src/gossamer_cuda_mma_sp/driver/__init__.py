"""What a machine needs to run kernels."""
