"""Sliced ELL (SELL): slices of a fixed number of rows in any order, each as wide as its longest row."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from gossamer_formats.format import MAX_VARIANTS, Format
from gossamer_formats.storage import with_value_dtype
from gossamer_heuristics.row_lengths import window_rows
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.script import parse_format
from gossamer_support.arrays import Array

_SCRIPT = """
@T.format
def sell(
    data: T.handle, indptr: T.handle, indices: T.handle, rows: T.handle,
    m: T.int64, n: T.int64, slices: T.int64, height: T.int64, longest: T.int64, slots: T.int64,
) -> None:
    S = T.sp.dense_fixed(slices)
    W = T.sp.dense_varied(S, (longest, slots), indptr, "int32")
    R = T.sp.dense_fixed(height, parent=W)
    J = T.sp.compressed_fixed(R, (n, 1), indices, "int32")
    A = T.sp.match_buffer(data, (S, W, R, J), "float32")
    ROWS = T.match_buffer(rows, (slices, height), "int32")
    T.assume(distinct(ROWS))
    T.sp.map(lambda s, w, r, j: (T.int64(ROWS[s, r]), j), shape=(m, n))
"""


@lru_cache(maxsize=MAX_VARIANTS)
def sell(dtype: str = "float32") -> FormatDescription:
    """Return the description of an m by n matrix in slices of `height` rows (SELL-C-sigma; Kreutzer and
    others, 2014).

    Its arrays are

    * `indptr` (slices + 1): the first slot of each slice;
    * `data` and `indices` (slots by height by 1): for each slot and each row of the slice an element and
      its column; unused slots have the column n;
    * `rows` (slices by height): the row of the matrix, each once. Where the last slice has fewer rows, it
      lists the rows m, m + 1, ...

    A conversion sorts the rows by length, the longest first, in windows of `sigma` rows. By default, a window
    has about a sixteenth of the rows, at least 256 and at most 4096.

    >>> sell().buffer.axes
    ('S', 'W', 'R', 'J')
    """
    return with_value_dtype(parse_format(_SCRIPT), dtype)


def rows_by_length(lengths: Array, parameters: Mapping[str, int]) -> Array:
    """Return all rows, sorted by length in windows.

    >>> rows_by_length(np.array([0, 2, 1, 0]), {"sigma": 2}).tolist()
    [1, 0, 2, 3]
    """
    windows = np.arange(lengths.size) // (parameters["sigma"] or window_rows(lengths.size))
    # `lexsort` is stable, so rows of equal length stay in order.
    return np.lexsort((-lengths, windows))


FORMAT = Format(
    "sell",
    sell,
    parameters={"height": 8, "sigma": 0},
    example_parameters={"height": 2, "sigma": 4},
    orders={"ROWS": rows_by_length},
)
