"""Prefetching of what later iterations read: rows that are gathered, and elements that follow each other."""
