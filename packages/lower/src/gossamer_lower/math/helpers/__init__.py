"""The table of math functions, and the statements and calls that are replaced by their arithmetic."""
