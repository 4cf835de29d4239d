"""Coordinates (COO): the coordinates and the value of each nonzero."""

from __future__ import annotations

from functools import lru_cache

from gossamer_formats.axis_order import with_order
from gossamer_formats.external_formats.binsparse_format import BinsparseFormat
from gossamer_formats.external_formats.scipy_coordinates import SCIPY_COO
from gossamer_formats.external_formats.torch_layout import TorchLayout
from gossamer_formats.format import MAX_VARIANTS, Format
from gossamer_ir.core.build import ONE, index_var
from gossamer_ir.nodes import (
    CompressedFixed,
    DenseFixed,
    FormatDescription,
    IndexMap,
    Param,
    SparseBuffer,
)


@lru_cache(maxsize=MAX_VARIANTS)
def coo(dtype: str = "float32", *, ndim: int = 2, sorted: bool = True) -> FormatDescription:
    """Return the description of a tensor by the coordinates of its nonzeros.

    They are sorted lexicographically unless `sorted=False`.

    Its arrays are `data` and, for each dimension d, `indices_d` (nnz); its shape is (n0, n1, ...).

    >>> coo(ndim=3).buffer.axes
    ('O', 'I0', 'I1', 'I2')
    """
    lengths = [index_var(f"n{number}") for number in range(ndim)]
    nnz = index_var("nnz")
    axes = [
        CompressedFixed(
            f"I{number}",
            f"I{number - 1}" if number else "O",
            length,
            # The first axis has a slot for each nonzero, the others have one slot below it.
            ONE if number else nnz,
            f"indices_{number}",
            unique=False,
            padded=False,
        )
        for number, length in enumerate(lengths)
    ]
    handles = ["data", *(axis.indices for axis in axes)]
    vars = ["o", *(f"i{number}" for number in range(ndim))]
    names = ("O", *(axis.name for axis in axes))
    # Nodes instead of a script, since the number of axes varies.
    description = FormatDescription(
        name="coo",
        params=(
            *(Param(handle, "handle") for handle in handles),
            *(Param(size.name, "int64") for size in (*lengths, nnz)),
        ),
        axes=(DenseFixed("O", ONE), *axes),
        buffer=SparseBuffer("A", names, dtype, handle="data"),
        map=IndexMap(tuple(vars), tuple(map(index_var, vars[1:]))),
        shape=tuple(lengths),
    )
    return with_order(description, sorted=sorted)


FORMAT = Format(
    "coo",
    coo,
    is_of_any_ndim=True,
    adapters=(
        SCIPY_COO,
        TorchLayout("sparse_coo"),
        BinsparseFormat(
            ("COO", "COOR"), {"indices_0": "indices_0", "indices_1": "indices_1"}, repeats=True
        ),
    ),
)
