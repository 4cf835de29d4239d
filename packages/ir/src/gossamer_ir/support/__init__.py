"""Functions that do not concern the language: argument checks, caches, pauses of garbage collection,
numbers in messages."""
