"""Traversal and rewriting of nodes, queries about statements and their buffers, names, equality."""
