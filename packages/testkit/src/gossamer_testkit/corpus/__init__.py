"""The corpus: programs with inputs and oracles."""
