"""The corpus: programs with inputs and the results that they should have."""
