"""Interprets PTX on the CPU, with the threads of a grid as lanes of arrays."""

# Other operations: none occurs; these are instructions of PTX, some with the names of operations.
