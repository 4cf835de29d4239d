"""Magnitude pruning of matrices to sparse formats."""
