"""Sliced ELL (SELL): slices of a fixed number of rows in any order, each as wide as its longest row."""

from __future__ import annotations

from functools import lru_cache

from gossamer_ir.core.build import ONE, index_var, widen
from gossamer_ir.nodes import (
    Buffer,
    CompressedFixed,
    DenseFixed,
    DenseVaried,
    FormatDescription,
    IndexMap,
    Load,
    Param,
    SparseBuffer,
)


@lru_cache(maxsize=64)
def sell(
    dtype: str = "float32",
    *,
    indptr_dtype: str = "int32",
    indices_dtype: str = "int32",
    rows_dtype: str = "int32",
) -> FormatDescription:
    """Return the description of an m by n matrix in slices of `height` rows (SELL-C-sigma; Kreutzer and
    others, 2014).

    Its arrays are

    * `indptr` (slices + 1): the first slot of each slice;
    * `data` and `indices` (slots by height by 1): for each slot and each row of the slice an element and
      its column; unused slots have the column n;
    * `rows` (slices by height): the row of the matrix. A slice with fewer rows lists arbitrary rows for
      the rest, whose slots are unused.

    >>> from gossamer_ir.script import print_format
    >>> print(print_format(sell()).splitlines()[-1].strip())
    T.sp.map(lambda s, w, r, j: (T.int64(ROWS[s, r]), j))
    """
    names = ("m", "n", "slices", "height", "widest", "slots")
    _, n, slices, height, widest, slots = map(index_var, names)
    handles = tuple(Param(name, "handle") for name in ("data", "indptr", "indices", "rows"))
    s, r, j = map(index_var, ("s", "r", "j"))
    return FormatDescription(
        name="sell",
        params=(*handles, *(Param(name, "int64") for name in names)),
        axes=(
            DenseFixed("S", slices),
            DenseVaried("W", "S", widest, slots, "indptr", indptr_dtype),
            DenseFixed("R", height, parent="W"),
            CompressedFixed("J", "R", n, ONE, "indices", indices_dtype),
        ),
        buffer=SparseBuffer("A", ("S", "W", "R", "J"), dtype, handle="data"),
        index_arrays=(Buffer("ROWS", (slices, height), rows_dtype, handle="rows"),),
        map=IndexMap(("s", "w", "r", "j"), (widen(Load("ROWS", (s, r), rows_dtype)), j)),
    )
