"""The rules of each stage."""
