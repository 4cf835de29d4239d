"""The map of a format from the coordinates of its axes to logical ones: its inverse, and what follows."""
