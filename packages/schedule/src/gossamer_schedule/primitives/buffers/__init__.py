"""Primitives on buffers: caches of them, their layout and where they live."""
