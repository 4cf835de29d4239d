"""Legality of transformations: which iterations may be exchanged or run in parallel, and which not."""
