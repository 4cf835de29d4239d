"""Diagonals (DIA): one row of storage for each diagonal with nonzeros, as long as the matrix is wide."""

from __future__ import annotations

from functools import lru_cache

from gossamer_formats.external_formats.scipy_diagonals import SCIPY_DIA
from gossamer_formats.format import MAX_VARIANTS, Format
from gossamer_formats.storage import with_value_dtype
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.script import parse_format

_SCRIPT = """
@T.format
def dia(data: T.handle, offsets: T.handle, m: T.int64, n: T.int64, diagonals: T.int64) -> None:
    D = T.sp.dense_fixed(diagonals)
    J = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(data, (D, J), "float32")
    OFFSETS = T.match_buffer(offsets, (diagonals,), "int32")
    T.sp.map(lambda d, j: (j - T.int64(OFFSETS[d]), j), shape=(m, n))
"""


@lru_cache(maxsize=MAX_VARIANTS)
def dia(dtype: str = "float32") -> FormatDescription:
    """Return the description of an m by n matrix in diagonals, as SciPy stores them.

    Its arrays are `data` (diagonals by n) and `offsets` (diagonals): the element in column j of
    diagonal d is in row j - offsets[d]. Slots whose row is outside of the matrix are not elements.

    >>> dia().buffer.axes
    ('D', 'J')
    """
    return with_value_dtype(parse_format(_SCRIPT), dtype)


FORMAT = Format(
    "dia",
    dia,
    adapters=(SCIPY_DIA,),
)
