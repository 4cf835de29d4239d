"""Blocks whose columns are lanes of vectors: the limit of their schedule and of its model."""

from __future__ import annotations

MIN_LANE_COLUMNS = 3
"""Minimum number of columns of a block for lanes to pay (measured on an Intel CPU, against scalar code on
blocks: 1.6 to 2.3 times faster at 3 columns; against CSR: 1.35 at 3, where lanes are masked, 3 at 4)."""
