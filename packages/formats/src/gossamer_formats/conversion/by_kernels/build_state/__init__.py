"""The state of building the storage of a destination axis by axis, and what kernels bind for each element."""
