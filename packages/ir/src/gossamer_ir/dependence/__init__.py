"""Dependence analysis: proves that different iterations of a loop access different elements."""
