"""ELL3D: per relation, groups of a fixed number of rows with a fixed number of slots."""

from __future__ import annotations

from functools import lru_cache

from gossamer_formats.format import MAX_VARIANTS, Format
from gossamer_formats.storage import with_value_dtype
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.script import parse_format

_SCRIPT = """
@T.format
def ell3d(
    data: T.handle, indptr: T.handle, rows: T.handle, columns: T.handle,
    relations: T.int64, m: T.int64, n: T.int64, longest: T.int64, groups: T.int64,
    group_rows: T.int64, width: T.int64,
) -> None:
    R = T.sp.dense_fixed(relations)
    IO = T.sp.dense_varied(R, (longest, groups), indptr, "int32")
    II = T.sp.compressed_fixed(IO, (m, group_rows), rows, "int32", unique=False)
    J = T.sp.compressed_fixed(II, (n, width), columns, "int32")
    A = T.sp.match_buffer(data, (R, IO, II, J), "float32")
    T.sp.map(lambda r, io, ii, j: (r, ii, j), shape=(relations, m, n))
"""


@lru_cache(maxsize=MAX_VARIANTS)
def ell3d(dtype: str = "float32") -> FormatDescription:
    """Return the description of a relations by m by n tensor in groups of `group_rows` rows with `width`
    slots.

    Its arrays are `indptr` (relations + 1), the first group of each relation, `rows` (groups by group_rows),
    `columns` and `data` (groups by group_rows by width). A row with more nonzeros than `width` is in several
    places. Unused places have the row m, unused slots the column n. The format is that of SparseTIR for
    relational graph convolution.

    >>> ell3d().buffer.axes
    ('R', 'IO', 'II', 'J')
    """
    return with_value_dtype(parse_format(_SCRIPT), dtype)


FORMAT = Format("ell3d", ell3d, parameters={"group_rows": 8, "width": 4})
