"""One primitive to a file: resolve references, preconditions, build, rewrite, result."""
