"""Calls of operators: checked operands, kernels of programs, plans of repeated calls."""
