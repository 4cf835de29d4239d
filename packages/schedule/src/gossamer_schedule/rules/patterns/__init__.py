"""The patterns of computations that rules recognize."""
