"""The corpus: programs with inputs and reference results."""
