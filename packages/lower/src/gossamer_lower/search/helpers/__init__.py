"""The loops of a search."""
