"""The storage of elements in a format, from arrays of coordinates."""
