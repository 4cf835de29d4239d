"""Caches: buffers with copies of the elements that a block loads and stores."""
