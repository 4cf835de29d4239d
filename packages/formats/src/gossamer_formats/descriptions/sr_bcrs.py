"""SR-BCRS: in strips of rows, the columns with nonzeros in groups of a fixed number."""

from __future__ import annotations

from functools import lru_cache

from gossamer_formats.format import MAX_VARIANTS, Format
from gossamer_formats.storage import with_value_dtype
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.script import parse_format

_SCRIPT = """
@T.format
def sr_bcrs(
    data: T.handle, indptr: T.handle, indices: T.handle,
    m: T.int64, n: T.int64, longest: T.int64, groups: T.int64, strip: T.int64, width: T.int64,
) -> None:
    IO = T.sp.dense_fixed((m + strip - 1) // strip)
    JO = T.sp.dense_varied(IO, (longest, groups), indptr, "int32")
    II = T.sp.dense_fixed(strip)
    JI = T.sp.compressed_fixed(JO, (n, width), indices, "int32")
    A = T.sp.match_buffer(data, (IO, JO, II, JI), "float32")
    T.sp.map(lambda io, jo, ii, ji: (io * strip + ii, ji), shape=(m, n))
"""


@lru_cache(maxsize=MAX_VARIANTS)
def sr_bcrs(dtype: str = "float32") -> FormatDescription:
    """Return the description of an m by n matrix in strips of `strip` rows (Magicube, Li and others, 2022).

    Each strip stores the columns in which one of its rows has a nonzero, `width` in a group. Its arrays are
    `indptr` (strips + 1), the first group of each strip, `indices` (groups by width) and `data` (groups by
    strip by width); unused slots have the column n.

    >>> sr_bcrs().buffer.axes
    ('IO', 'JO', 'II', 'JI')
    """
    return with_value_dtype(parse_format(_SCRIPT), dtype)


FORMAT = Format(
    "sr_bcrs",
    sr_bcrs,
    parameters={"strip": 8, "width": 4},
    example_parameters={"strip": 2, "width": 2},
)
