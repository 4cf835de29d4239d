"""Loops that are unrolled, peeled, split or unswitched."""
