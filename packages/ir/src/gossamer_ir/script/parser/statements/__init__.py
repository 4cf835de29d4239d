"""Statements: loops, blocks, iterations, reducers and calls."""
