"""Row-gathered ELL: some rows in any number of places, each with a fixed number of slots."""

from __future__ import annotations

from functools import lru_cache

from gossamer_formats.axis_order import with_order
from gossamer_formats.format import MAX_VARIANTS, Format
from gossamer_formats.storage import with_value_dtype
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.script import parse_format

_SCRIPT = """
@T.format
def ell_rows(
    data: T.handle, rows: T.handle, indices: T.handle,
    m: T.int64, n: T.int64, stored: T.int64, width: T.int64,
) -> None:
    O = T.sp.dense_fixed(1)
    I = T.sp.compressed_fixed(O, (m, stored), rows, "int32", unique=False, padded=False)
    J = T.sp.compressed_fixed(I, (n, width), indices, "int32")
    A = T.sp.match_buffer(data, (O, I, J), "float32")
    T.sp.map(lambda o, i, j: (i, j), shape=(m, n))
"""


@lru_cache(maxsize=MAX_VARIANTS)
def ell_rows(dtype: str = "float32", *, unique: bool = False) -> FormatDescription:
    """Return the description of one bucket of `hyb`: `stored` rows of an m by n matrix with `width` slots.

    Its arrays are `rows` (stored), `indices` and `data` (stored by width); unused slots have the column n.
    A row with more nonzeros than `width` is stored several times, unless rows are declared `unique`.

    >>> ell_rows().buffer.axes
    ('O', 'I', 'J')
    """
    description = with_value_dtype(parse_format(_SCRIPT), dtype)
    return with_order(description, unique=unique, axis_names=("I",))


FORMAT = Format("ell_rows", ell_rows, parameters={"width": None}, example_parameters={"width": 2})
