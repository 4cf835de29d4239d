"""Diagonals (DIA): one row of storage for each diagonal with nonzeros, as long as the matrix is wide."""

from __future__ import annotations

from functools import lru_cache

from gossamer_formats.format import Format
from gossamer_ir.core.build import index_var, sub, widen
from gossamer_ir.nodes import (
    Buffer,
    DenseFixed,
    FormatDescription,
    IndexMap,
    Load,
    Param,
    SparseBuffer,
)


@lru_cache(maxsize=64)
def dia(dtype: str = "float32") -> FormatDescription:
    """Return the description of an m by n matrix in diagonals, as SciPy stores them.

    Its arrays are `data` (diagonals by n) and `offsets` (diagonals): the element in column j of
    diagonal d is in row j - offsets[d]. Slots whose row is outside of the matrix are not elements.

    >>> from gossamer_ir.script import print_format
    >>> print(print_format(dia()).splitlines()[-1].strip())
    T.sp.map(lambda d, j: (j - T.int64(OFFSETS[d]), j), shape=(m, n))
    """
    m, n, diagonals, d, j = map(index_var, ("m", "n", "diagonals", "d", "j"))
    handles = tuple(Param(name, "handle") for name in ("data", "offsets"))
    sizes = tuple(Param(size.name, "int64") for size in (m, n, diagonals))
    offset = widen(Load("OFFSETS", (d,), "int32"))
    return FormatDescription(
        name="dia",
        params=(*handles, *sizes),
        axes=(DenseFixed("D", diagonals), DenseFixed("J", n)),
        buffer=SparseBuffer("A", ("D", "J"), dtype, handle="data"),
        index_arrays=(Buffer("OFFSETS", (diagonals,), "int32", handle="offsets"),),
        map=IndexMap(("d", "j"), (sub(j, offset), j)),
        shape=(m, n),
    )


FORMAT = Format("dia", dia)
