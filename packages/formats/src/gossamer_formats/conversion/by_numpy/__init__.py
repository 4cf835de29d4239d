"""Conversions by NumPy, of few elements and of all that kernels leave to it.

`stored_elements` reads a storage as arrays of coordinates; `store_elements` makes the storage of such arrays.
"""
