"""Primitives on blocks: where they are computed, and how reductions are decomposed."""
