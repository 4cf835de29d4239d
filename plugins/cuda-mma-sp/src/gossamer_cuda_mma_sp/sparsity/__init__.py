"""Structured sparsity on the host: matrices are compressed, and packed as sparse tensor cores read them.

Everything here is computed by NumPy and needs neither a GPU nor a driver.
"""
