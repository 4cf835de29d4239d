"""Arguments of kernels: arrays replaced by known values, unused parameters removed."""
