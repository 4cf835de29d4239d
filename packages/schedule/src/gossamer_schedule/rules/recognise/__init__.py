"""The patterns of computations that rules recognise."""
