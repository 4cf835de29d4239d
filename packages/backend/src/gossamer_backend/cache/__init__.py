"""Compiled artifacts on disk: the cache, its keys, files and limits."""
