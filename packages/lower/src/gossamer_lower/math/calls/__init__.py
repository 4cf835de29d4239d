"""Calls of math functions, and the statements around them, are replaced by arithmetic."""
