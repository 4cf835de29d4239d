"""The axes of a target that were added so far, and what kernels bind for them."""
