"""From checked operands to bound kernels: of a matrix in one format, in parts, or on a device."""
