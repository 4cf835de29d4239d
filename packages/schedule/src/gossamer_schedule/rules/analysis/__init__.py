"""Properties of programs for several patterns: iterations, outputs, reads, and the names that are used."""
