"""The gossamer backend for all CPUs that LLVM supports, multi-threaded."""
