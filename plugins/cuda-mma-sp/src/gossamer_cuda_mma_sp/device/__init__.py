"""A GPU with its memory, and kernels that run there."""
