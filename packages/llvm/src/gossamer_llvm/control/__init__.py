"""Control flow, and calls between functions."""
