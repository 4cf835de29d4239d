"""Cursors: find loops, blocks and iterations by name, follow them through steps, and replace them."""
