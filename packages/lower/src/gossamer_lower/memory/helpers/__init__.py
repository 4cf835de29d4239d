"""The range of indices of each buffer."""
