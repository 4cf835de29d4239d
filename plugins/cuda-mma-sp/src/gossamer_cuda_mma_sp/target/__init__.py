"""The GPU that a target describes."""
