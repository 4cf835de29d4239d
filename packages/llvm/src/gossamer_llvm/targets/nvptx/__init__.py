"""GPUs of NVIDIA: kernels in PTX, and what the threads of a block and of a warp do together."""
