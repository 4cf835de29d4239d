"""Arrays of matrices: CSR arrays, those of SciPy's matrices, and the memory available for them."""
