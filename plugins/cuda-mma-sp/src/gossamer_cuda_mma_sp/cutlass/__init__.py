"""The order of metadata in kernels of CUTLASS: compressed matrices are converted to it and back."""
