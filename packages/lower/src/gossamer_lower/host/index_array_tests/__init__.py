"""Tests of the index arrays of an axis, inside the loop over its rows."""
