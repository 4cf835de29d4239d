"""Kernels that answer questions about all elements before an axis is built."""
