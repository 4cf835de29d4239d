"""The elements of a storage as arrays of coordinates."""
