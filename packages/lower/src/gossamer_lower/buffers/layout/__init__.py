"""Where the elements of a sparse buffer are stored: the ordinary buffers, their sizes and facts."""
