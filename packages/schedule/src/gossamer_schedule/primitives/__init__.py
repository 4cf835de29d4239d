"""The primitives, one to a file: preconditions first, then the rewriting."""
