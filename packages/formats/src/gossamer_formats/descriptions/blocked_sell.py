"""Blocked sliced ELL: slices of a fixed number of block rows in any order, each as wide as its longest."""

from __future__ import annotations

from functools import lru_cache

from gossamer_formats.descriptions.sell import rows_by_length
from gossamer_formats.format import MAX_VARIANTS, Format
from gossamer_formats.storage import with_value_dtype
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.script import parse_format

# The rows of a slice are stored after the axes of a block, so that equal places in the blocks of a slot are
# next to each other: one vector.
_SCRIPT = """
@T.format
def blocked_sell(
    data: T.handle, indptr: T.handle, indices: T.handle, rows: T.handle,
    m: T.int64, n: T.int64, slices: T.int64, height: T.int64, longest: T.int64, slots: T.int64,
    block_rows: T.int64, block_columns: T.int64,
) -> None:
    S = T.sp.dense_fixed(slices)
    W = T.sp.dense_varied(S, (longest, slots), indptr, "int32")
    II = T.sp.dense_fixed(block_rows)
    JI = T.sp.dense_fixed(block_columns)
    R = T.sp.dense_fixed(height, parent=W)
    JO = T.sp.compressed_fixed(
        R, ((n + block_columns - 1) // block_columns, 1), indices, "int32"
    )
    A = T.sp.match_buffer(data, (S, W, II, JI, R, JO), "float32")
    ROWS = T.match_buffer(rows, (slices, height), "int32")
    T.assume(distinct(ROWS))
    T.sp.map(
        lambda s, w, ii, ji, r, jo: (
            T.int64(ROWS[s, r]) * block_rows + ii, jo * block_columns + ji
        ),
        shape=(m, n),
    )
"""


@lru_cache(maxsize=MAX_VARIANTS)
def blocked_sell(dtype: str = "float32") -> FormatDescription:
    """Return the description of an m by n matrix in slices of `height` block rows: SELL of dense blocks of
    `block_rows` by `block_columns`.

    Its arrays are

    * `indptr` (slices + 1): the first slot of each slice;
    * `indices` (slots by height by 1): for each slot and each block row of the slice the block column of a
      block; unused slots have the number of block columns;
    * `data` (slots by block_rows by block_columns by height by 1): for each slot and each place in a block
      the elements of all block rows of the slice;
    * `rows` (slices by height): the block row of the matrix, each once. Where the last slice has fewer, it
      lists the numbers after the last one.

    The last blocks may extend beyond the matrix. A conversion sorts block rows as it sorts the rows of
    `sell`, by the number of their elements.

    >>> blocked_sell().buffer.axes
    ('S', 'W', 'II', 'JI', 'R', 'JO')
    """
    return with_value_dtype(parse_format(_SCRIPT), dtype)


FORMAT = Format(
    "blocked_sell",
    blocked_sell,
    parameters={"block_rows": None, "block_columns": None, "height": 8, "sigma": 0},
    example_parameters={"block_rows": 2, "block_columns": 2, "height": 2, "sigma": 4},
    orders={"ROWS": rows_by_length},
)
