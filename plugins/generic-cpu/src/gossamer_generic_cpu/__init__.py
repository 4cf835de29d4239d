"""The default gossamer backend: optimized, multi-threaded code for this CPU or another that LLVM supports."""
