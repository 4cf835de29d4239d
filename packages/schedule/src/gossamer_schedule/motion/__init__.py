"""Blocks and loops that move: into other loops, into expressions, past each other."""
