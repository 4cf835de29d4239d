"""Kernels as CUDA C++: a text to read, and a second opinion on the code that LLVM makes."""
