"""The gossamer backend for Arm CPUs with scalable vectors (SVE): kernels run natively or under emulation."""
