"""Copies of what blocks load and store, in buffers of their own."""
