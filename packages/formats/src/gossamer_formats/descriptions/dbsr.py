"""Doubly compressed block sparse rows (DBSR): BSR of the rows of blocks that have nonzeros."""

from __future__ import annotations

from functools import lru_cache

from gossamer_formats.format import MAX_VARIANTS, Format
from gossamer_formats.storage import with_value_dtype
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.script import parse_format

_SCRIPT = """
@T.format
def dbsr(
    data: T.handle, rows: T.handle, indptr: T.handle, indices: T.handle,
    m: T.int64, n: T.int64, stored: T.int64, blocks: T.int64,
    block_rows: T.int64, block_columns: T.int64,
) -> None:
    O = T.sp.dense_fixed(1)
    IO = T.sp.compressed_fixed(
        O, ((m + block_rows - 1) // block_rows, stored), rows, "int32", padded=False
    )
    JO = T.sp.compressed_varied(
        IO, ((n + block_columns - 1) // block_columns, blocks), (indptr, indices), "int32"
    )
    II = T.sp.dense_fixed(block_rows)
    JI = T.sp.dense_fixed(block_columns)
    A = T.sp.match_buffer(data, (O, IO, JO, II, JI), "float32")
    T.sp.map(
        lambda o, io, jo, ii, ji: (io * block_rows + ii, jo * block_columns + ji), shape=(m, n)
    )
"""


@lru_cache(maxsize=MAX_VARIANTS)
def dbsr(dtype: str = "float32") -> FormatDescription:
    """Return the description of an m by n matrix in blocks, without the empty rows of blocks.

    Its arrays are `rows` (stored rows of blocks), `indptr` (stored + 1), `indices` (blocks) and `data`
    (blocks by block_rows by block_columns).

    >>> dbsr().buffer.axes
    ('O', 'IO', 'JO', 'II', 'JI')
    """
    return with_value_dtype(parse_format(_SCRIPT), dtype)


FORMAT = Format(
    "dbsr",
    dbsr,
    parameters={"block_rows": None, "block_columns": None},
    example_parameters={"block_rows": 2, "block_columns": 2},
)
