"""Kernels as files for programs that launch them by the driver API."""
