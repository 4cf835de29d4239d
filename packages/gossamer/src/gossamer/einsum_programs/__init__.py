"""Sums of products in Einstein's notation, over sparse and dense operands."""
