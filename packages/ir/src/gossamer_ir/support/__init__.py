"""Functions that do not concern the language: argument checks, caches, cgroups, pauses of garbage
collection, numbers in messages."""
