"""Searches that depend on index arrays only, as a kernel that runs once."""
