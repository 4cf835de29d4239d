"""The axes of a function: their index arrays, their relations, and the storage of their elements."""
