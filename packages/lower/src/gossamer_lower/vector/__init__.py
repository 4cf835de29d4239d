"""Vectorized loops become vector code."""
