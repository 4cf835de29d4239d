"""Rows that are too short for vectors of their own elements."""

from __future__ import annotations

SHORT_ROW = 4
"""Maximum length of all rows for scalar code on contiguous elements: the branches of short rows of equal
length are predicted (measured in sums of rows: 2.5 times faster at 2 elements)."""
