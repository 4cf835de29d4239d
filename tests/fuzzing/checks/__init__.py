"""How programs and calls are run and checked."""
