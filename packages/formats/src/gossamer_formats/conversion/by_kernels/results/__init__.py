"""The last kernel of a conversion, which stores coordinates and values."""
