"""Interprets PTX on the CPU, with the threads of a grid as lanes of arrays."""
