"""Sliced diagonals: slices of a fixed number of consecutive rows, each with the diagonals that it needs."""

from __future__ import annotations

from functools import lru_cache

from gossamer_formats.format import MAX_VARIANTS, Format
from gossamer_formats.storage import with_value_dtype
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.script import parse_format

# A diagonal is named by the column of its element in the last row of the slice, so that those to the left of
# the matrix have no negative number.
_SCRIPT = """
@T.format
def sliced_dia(
    data: T.handle, indptr: T.handle, indices: T.handle,
    m: T.int64, n: T.int64, diagonals: T.int64, height: T.int64,
) -> None:
    S = T.sp.dense_fixed((m + height - 1) // height)
    D = T.sp.compressed_varied(S, (n + height - 1, diagonals), (indptr, indices), "int32")
    R = T.sp.dense_fixed(height)
    A = T.sp.match_buffer(data, (S, D, R), "float32")
    T.sp.map(lambda s, d, r: (s * height + r, d + r - height + 1), shape=(m, n))
"""


@lru_cache(maxsize=MAX_VARIANTS)
def sliced_dia(dtype: str = "float32") -> FormatDescription:
    """Return the description of an m by n matrix in slices of `height` consecutive rows, which are stored
    diagonal by diagonal.

    Its arrays are

    * `indptr` (slices + 1): the first diagonal of each slice;
    * `indices` (diagonals): the column of a diagonal in the last row of the slice, which may be at the right
      of the matrix;
    * `data` (diagonals by height): the elements of a diagonal in the rows of the slice.

    In row r of the slice, a diagonal has the column indices - (height - 1 - r). Where it is outside of the
    matrix, as are rows after the last one, it has no element.

    >>> sliced_dia().buffer.axes
    ('S', 'D', 'R')
    """
    return with_value_dtype(parse_format(_SCRIPT), dtype)


FORMAT = Format(
    "sliced_dia",
    sliced_dia,
    parameters={"height": 32},
    example_parameters={"height": 2},
)
