"""Tiled CSR: tiles of columns, each of them a matrix in CSR."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from gossamer_formats.format import MAX_VARIANTS, Format
from gossamer_formats.product_storage import ProductStorage
from gossamer_formats.storage import with_value_dtype
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.script import parse_format

_SCRIPT = """
@T.format
def tiled_csr(
    data: T.handle, indptr: T.handle, indices: T.handle,
    m: T.int64, n: T.int64, nnz: T.int64, tile_columns: T.int64,
) -> None:
    JO = T.sp.dense_fixed({tiles})
    I = T.sp.dense_fixed(m, parent=JO)
    J = T.sp.compressed_varied(I, (tile_columns, nnz), (indptr, indices), "int32"{indices})
    A = T.sp.match_buffer(data, (JO, I, J), "float32")
    T.sp.map(lambda jo, i, j: (i, jo * tile_columns + j), shape=(m, n))
"""


MAX_NARROW = 1 << 16
"""The largest number of columns of a tile whose indices fit into 16 bits."""


@lru_cache(maxsize=MAX_VARIANTS)
def tiled_csr(
    dtype: str = "float32", *, is_whole: bool = False, is_narrow: bool = False
) -> FormatDescription:
    """Return the description of an m by n matrix in tiles of `tile_columns` columns. The last tile may extend
    beyond the matrix; if `is_whole`, there are only tiles inside, and columns after them cannot be stored. If
    `is_narrow`, columns are stored in 16 bits, and tiles have at most `MAX_NARROW` columns.

    Its arrays are `indptr` (tiles times m + 1), `indices` (nnz), columns in their tile, and `data` (nnz). The
    rows of a dense matrix that belong to a tile stay in a cache while all rows of the tile are multiplied.

    >>> tiled_csr().buffer.axes
    ('JO', 'I', 'J')
    >>> tiled_csr(is_narrow=True).axes[2].indices_dtype
    'uint16'
    """
    tiles = "n // tile_columns" if is_whole else "(n + tile_columns - 1) // tile_columns"
    indices = ', indices_dtype="uint16"' if is_narrow else ""
    return with_value_dtype(parse_format(_SCRIPT.format(tiles=tiles, indices=indices)), dtype)


def _parts(shape: tuple[int, ...], parameters: Mapping[str, int]) -> list[Any]:
    """Return whole tiles, in which a schedule needs no conditions, and the columns after the last of them in
    CSR."""
    width = parameters["tile_columns"]
    whole = shape[1] // width * width
    # Narrow columns are half as many bytes to read for each tile of features.
    tiled = tiled_csr(is_whole=True, is_narrow=width <= MAX_NARROW)
    return [(tiled, lambda _, columns: columns < whole, dict(parameters)), "csr"]


FORMAT = Format(
    "tiled_csr",
    tiled_csr,
    parameters={"tile_columns": None},
    example_parameters={"tile_columns": 3},
    # Panels of rows are divided among threads, by their statistics.
    adapters=(ProductStorage(parts=_parts, uses_stats=True),),
)
