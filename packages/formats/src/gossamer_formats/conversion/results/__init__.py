"""The last program of a conversion, which stores coordinates and values."""
