"""Compile flat modules to object code; micro-kernels for intrinsics."""
