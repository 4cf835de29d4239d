"""Traversal and rewriting of nodes, the table of their effects, names, structural equality."""
