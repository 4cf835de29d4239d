"""The arithmetic of math functions, one file for each family."""
