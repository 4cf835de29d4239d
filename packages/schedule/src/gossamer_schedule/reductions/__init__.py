"""Reductions: terms that may be combined in any order, and two-stage reductions."""
