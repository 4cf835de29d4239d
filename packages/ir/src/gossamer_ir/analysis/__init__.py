"""What is known of a function: accesses, bounds, invariants, regions."""
