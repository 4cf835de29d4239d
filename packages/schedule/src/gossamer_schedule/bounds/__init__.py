"""Proofs about sizes, conditions and accesses in bounds."""
