"""Calls of operators: a plan of the fast path is tried first, then operands are checked and converted."""
