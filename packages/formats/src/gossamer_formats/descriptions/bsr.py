"""Block sparse rows (BSR): CSR of dense blocks."""

from __future__ import annotations

from functools import lru_cache

from gossamer_formats.axis_order import with_order
from gossamer_formats.external_formats.scipy_blocks import SCIPY_BSR
from gossamer_formats.external_formats.torch_layout import TorchLayout
from gossamer_formats.format import MAX_VARIANTS, Format
from gossamer_formats.pruning.rules import LARGEST_BLOCKS
from gossamer_formats.storage import with_value_dtype
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.script import parse_format

_SCRIPT = """
@T.format
def bsr(
    data: T.handle, indptr: T.handle, indices: T.handle,
    m: T.int64, n: T.int64, blocks: T.int64, block_rows: T.int64, block_columns: T.int64,
) -> None:
    IO = T.sp.dense_fixed((m + block_rows - 1) // block_rows)
    JO = T.sp.compressed_varied(
        IO, ((n + block_columns - 1) // block_columns, blocks), (indptr, indices), "int32"
    )
    II = T.sp.dense_fixed(block_rows)
    JI = T.sp.dense_fixed(block_columns)
    A = T.sp.match_buffer(data, (IO, JO, II, JI), "float32")
    T.sp.map(
        lambda io, jo, ii, ji: (io * block_rows + ii, jo * block_columns + ji), shape=(m, n)
    )
"""


@lru_cache(maxsize=MAX_VARIANTS)
def bsr(dtype: str = "float32", *, sorted: bool = True) -> FormatDescription:
    """Return the description of an m by n matrix in blocks of `block_rows` by `block_columns`.

    Its arrays are `indptr` (rows of blocks + 1), `indices` (blocks) and `data` (blocks by block_rows by
    block_columns). The last blocks may extend beyond the matrix. The blocks of a row are sorted unless
    `sorted=False`.

    >>> bsr().buffer.axes
    ('IO', 'JO', 'II', 'JI')
    """
    return with_order(with_value_dtype(parse_format(_SCRIPT), dtype), sorted=sorted)


FORMAT = Format(
    "bsr",
    bsr,
    parameters={"block_rows": None, "block_columns": None},
    example_parameters={"block_rows": 2, "block_columns": 2},
    adapters=(
        SCIPY_BSR,
        TorchLayout("sparse_bsr", indptr="crow_indices", indices="col_indices"),
        LARGEST_BLOCKS,
    ),
)
