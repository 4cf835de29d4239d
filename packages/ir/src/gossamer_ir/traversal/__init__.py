"""Walks over nodes, the table of their effects, names, equality."""
