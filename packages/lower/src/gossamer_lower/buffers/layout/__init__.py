"""The layout of the elements of a sparse buffer: the ordinary buffers, their sizes and facts."""
