"""The buffer accesses of statements, and the loops that run them."""
