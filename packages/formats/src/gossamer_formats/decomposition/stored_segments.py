"""Segments of rows in rows of fixed width."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_support.arrays import Array


class StoredSegments(NamedTuple):
    """Segments in rows of fixed width: columns, values, and the value indices in the matrix,
    `UNSTORED` for unused slots."""

    columns: Array
    values: Array
    permutation: Array
