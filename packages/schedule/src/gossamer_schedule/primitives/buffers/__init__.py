"""Primitives on buffers: caches, layouts and memory scopes."""
