"""How programs and calls are checked."""
