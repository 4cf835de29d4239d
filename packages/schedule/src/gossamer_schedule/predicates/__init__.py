"""Predicates of blocks and bounds of loops, which restrict iterations."""
