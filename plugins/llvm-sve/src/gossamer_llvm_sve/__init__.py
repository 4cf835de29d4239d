"""The gossamer backend for Arm CPUs with scalable vectors (SVE), whose kernels run under emulation."""
