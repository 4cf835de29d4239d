"""Conversions between formats, derived from the two descriptions.

* `convert_storage`: chooses between the two ways, each of which has a folder of its own:
* `by_kernels`: compiled kernels, for large tensors, and for small ones if they are repeated;
* `by_numpy`: few elements, for which compiling does not pay, and what kernels leave to NumPy;
* `destination`: what both convert to: a format with its sizes, dtypes and inverse map.
"""
