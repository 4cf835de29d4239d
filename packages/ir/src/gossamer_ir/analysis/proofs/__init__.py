"""Proofs about expressions at a point of a program, under the conditions that hold there."""
