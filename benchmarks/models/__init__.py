"""Layers of published models: cases with an oracle, and the records of their times."""
