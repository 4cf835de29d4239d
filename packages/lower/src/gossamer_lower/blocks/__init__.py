"""Blocks, their inits and declared reducers become plain statements."""
