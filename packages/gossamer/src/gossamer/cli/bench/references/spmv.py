"""SciPy's product of a sparse matrix and a vector."""

from __future__ import annotations

from collections.abc import Iterator

from gossamer.cli.bench.references import spmm
from gossamer.cli.bench.references.reference import Reference, ReferencePart, Shapes
from gossamer_formats import Array, SparseTensor


def shapes(matrix: SparseTensor, _features: int) -> Shapes:
    """x and y."""
    rows, columns = matrix.shape
    return Shapes(((columns,),), (rows,))


def parts(matrix: SparseTensor, vector: Array) -> Iterator[ReferencePart]:
    """Return the product in float64."""
    for at, *arrays in spmm.parts(matrix, vector[:, None]):
        yield ReferencePart(at[:1], *(array[:, 0] for array in arrays))


REFERENCE = Reference(shapes, parts, spmm.scipy)
