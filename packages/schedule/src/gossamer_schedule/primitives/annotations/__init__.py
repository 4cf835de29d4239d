"""Primitives that change what is noted of loops and blocks, and nothing that they compute."""
