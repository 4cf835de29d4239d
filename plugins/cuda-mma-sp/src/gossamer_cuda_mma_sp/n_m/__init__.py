"""N:M matrices on the host: patterns, the dtypes of operands, compression and metadata in row order.

Everything here is computed by NumPy and needs neither a GPU nor a driver.
"""
