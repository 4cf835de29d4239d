"""Values, and the arrays that buffers and axes are stored in."""
