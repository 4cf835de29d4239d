"""Row groups: groups of a fixed number of rows in any order, each with the columns of all its rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from gossamer_formats.format import MAX_VARIANTS, Format
from gossamer_formats.storage import with_value_dtype
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.script import parse_format
from gossamer_support.arrays import Array

_SCRIPT = """
@T.format
def row_groups(
    data: T.handle, indptr: T.handle, indices: T.handle, rows: T.handle,
    m: T.int64, n: T.int64, slots: T.int64, height: T.int64,
) -> None:
    G = T.sp.dense_fixed((m + height - 1) // height)
    J = T.sp.compressed_varied(G, (n, slots), (indptr, indices), "int32")
    R = T.sp.dense_fixed(height)
    A = T.sp.match_buffer(data, (G, J, R), "float32")
    ROWS = T.match_buffer(rows, ((m + height - 1) // height, height), "int32")
    T.assume(in_range(ROWS, 0, (m + height - 1) // height * height))
    T.assume(distinct(ROWS))
    T.sp.map(lambda g, j, r: (T.int64(ROWS[g, r]), j), shape=(m, n))
"""


@lru_cache(maxsize=MAX_VARIANTS)
def row_groups(dtype: str = "float32") -> FormatDescription:
    """Return the description of an m by n matrix in groups of `height` rows, which may be in any order.

    Its arrays are

    * `indptr` (groups + 1): the first slot of each group;
    * `indices` (slots): the columns in which a row of the group has an element;
    * `data` (slots by height): for each of these columns the elements of all rows of the group, zero where
      a row has none;
    * `rows` (groups by height): the row of the matrix, each once. Where the last group has fewer rows, it
      lists the rows m, m + 1, ...

    Rows with similar columns belong next to each other. In groups of one row, which have no zeros, such an
    order keeps the rows of a dense operand in the caches until they are read again. In larger groups, each
    row of the operand is read once for all rows of the group.

    >>> row_groups().buffer.axes
    ('G', 'J', 'R')
    """
    return with_value_dtype(parse_format(_SCRIPT), dtype)


def _all_rows(counts: Array, _parameters: Mapping[str, int]) -> Array:
    """Return all rows in ascending order, also those without elements."""
    return np.arange(counts.size)


FORMAT = Format(
    "row_groups",
    row_groups,
    parameters={"height": 1},
    example_parameters={"height": 2},
    orders={"ROWS": _all_rows},
)
