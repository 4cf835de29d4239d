"""Calls of kernels: their ABI, kernels for Python, call plans, and threads."""
