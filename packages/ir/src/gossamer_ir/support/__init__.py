"""Functions that do not concern the language: argument checks, caches, cgroups, checks of index arrays."""
