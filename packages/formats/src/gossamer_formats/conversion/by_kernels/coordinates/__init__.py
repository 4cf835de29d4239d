"""The coordinates of elements along the axes of the destination."""
