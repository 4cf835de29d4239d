"""Compressed sparse fibers (CSF): a tree of coordinates, compressed at each level."""

from __future__ import annotations

from functools import lru_cache

from gossamer_formats.format import MAX_VARIANTS, Format
from gossamer_ir.core.build import ONE, index_var
from gossamer_ir.nodes import (
    CompressedFixed,
    CompressedVaried,
    DenseFixed,
    FormatDescription,
    IndexMap,
    Param,
    SparseBuffer,
)


@lru_cache(maxsize=MAX_VARIANTS)
def csf(dtype: str = "float32", *, ndim: int = 3) -> FormatDescription:
    """Return the description of a tensor of shape (n0, n1, ...) as a tree (Smith and Karypis, 2015).

    Its arrays are `data`, for each dimension d `indices_d` (stored_d), and `indptr_d` (stored_(d-1) + 1) for
    all but the first.

    >>> csf().buffer.axes
    ('O', 'I0', 'I1', 'I2')
    """
    lengths = [index_var(f"n{number}") for number in range(ndim)]
    stored = [index_var(f"stored_{number}") for number in range(ndim)]
    first = CompressedFixed("I0", "O", lengths[0], stored[0], "indices_0", padded=False)
    inner = [
        CompressedVaried(
            f"I{number}",
            f"I{number - 1}",
            lengths[number],
            stored[number],
            f"indptr_{number}",
            f"indices_{number}",
        )
        for number in range(1, ndim)
    ]
    handles = ["data", "indices_0"]
    for axis in inner:
        handles += [axis.indptr, axis.indices]
    vars = ["o", *(f"i{number}" for number in range(ndim))]
    names = ("O", "I0", *(axis.name for axis in inner))
    # Nodes instead of a script, since the number of axes varies.
    return FormatDescription(
        name="csf",
        params=(
            *(Param(handle, "handle") for handle in handles),
            *(Param(size.name, "int64") for size in (*lengths, *stored)),
        ),
        axes=(DenseFixed("O", ONE), first, *inner),
        buffer=SparseBuffer("A", names, dtype, handle="data"),
        map=IndexMap(tuple(vars), tuple(map(index_var, vars[1:]))),
        shape=tuple(lengths),
    )


FORMAT = Format("csf", csf, is_of_any_ndim=True)
