"""The axes of a destination that were added so far, and what kernels bind for them."""
