"""Reductions into elements that iterations share, for `parallel` and `vectorize`."""
