"""Functions that do not concern the language: argument checks, caches, cgroups, checks of index arrays,
installed distributions and the errors of their plugins."""
