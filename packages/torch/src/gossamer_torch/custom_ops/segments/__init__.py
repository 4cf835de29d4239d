"""Products of gathered rows with the matrix of their segment: operators, and kernels for groups of them."""
