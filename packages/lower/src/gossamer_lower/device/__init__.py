"""Kernels for devices: grids of threads, and what their threads exchange."""
