"""gossamer backend for any CPU that LLVM knows, multi-threaded."""
