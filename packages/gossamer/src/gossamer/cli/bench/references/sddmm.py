"""Dot products of gathered rows: a sampled product of dense matrices in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gossamer.cli.bench.references.reference import Reference, ReferencePart, Shapes, blocks
from gossamer_formats import Array, SparseTensor

GATHERED = 1 << 16
"""The number of elements of an operand that are gathered at a time, so that they stay in the cache."""


def shapes(matrix: SparseTensor, features: int) -> Shapes:
    """X, Y and the sampled elements."""
    rows, columns = matrix.shape
    return Shapes(((rows, features), (columns, features)), (matrix.nnz,))


def parts(matrix: SparseTensor, left: Array, right: Array) -> Iterator[ReferencePart]:
    """Return the dot products in float64."""
    rows, columns = _coordinates(matrix)
    terms = np.array(left.shape[1])
    for at in blocks(matrix.nnz, left.shape[1]):
        x, y = left[rows[at]].astype(np.float64), right[columns[at]].astype(np.float64)
        with np.errstate(all="ignore"):
            yield ReferencePart((at,), _dot(x, y), _dot(np.abs(x), np.abs(y)), terms)


def scipy(matrix: SparseTensor, left: Array, right: Array) -> Callable[[], Array]:
    """Return a function that gathers rows and multiplies them, in blocks, with precomputed coordinates."""
    rows, columns = _coordinates(matrix)
    return lambda: gathered_products(rows, columns, left, right)


def gathered_products(
    rows: Array, columns: Array, left: Array, right: Array, *, elements: int = GATHERED
) -> Array:
    """The dot products of some rows of `left` and as many of `right`, in the dtype of `left`; about so
    many elements of each are gathered at a time."""
    found = np.empty(len(rows), dtype=left.dtype)
    for at in blocks(len(rows), left.shape[1], elements=elements):
        found[at] = _dot(left[rows[at]], right[columns[at]])
    return found


def _coordinates(matrix: SparseTensor) -> tuple[Array, Array]:
    """Return the row and the column of each stored element."""
    indptr, columns = matrix.arrays["indptr"], matrix.arrays["indices"]
    return np.repeat(np.arange(matrix.shape[0]), np.diff(indptr)), columns


def _dot(left: Array, right: Array) -> Array:
    found: Array = np.einsum("ek,ek->e", left, right)
    return found


REFERENCE = Reference(shapes, parts, scipy)
