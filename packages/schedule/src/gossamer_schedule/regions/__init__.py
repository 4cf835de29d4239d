"""Which elements an iteration requires of one buffer, and which it produces."""
