"""GPUs of NVIDIA: kernels in PTX, and the common work of the threads of a block and of a warp."""
