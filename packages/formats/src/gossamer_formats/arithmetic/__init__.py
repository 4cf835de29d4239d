"""Arithmetic on the stored values of a tensor: factors, reductions, rows. SciPy's conventions."""
