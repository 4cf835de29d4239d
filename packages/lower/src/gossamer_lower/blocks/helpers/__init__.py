"""Inits of blocks, and lets that are inlined."""
