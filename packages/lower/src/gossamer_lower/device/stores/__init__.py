"""Proofs that threads which run concurrently access different elements."""
