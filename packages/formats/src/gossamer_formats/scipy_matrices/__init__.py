"""The arrays of SciPy's sparse matrices and arrays, in their own formats and in CSR."""
