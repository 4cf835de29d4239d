"""The machine: its description, its measured bounds, and C code compiled for it."""
