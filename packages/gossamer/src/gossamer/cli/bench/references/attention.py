"""Attention over a pattern as users of NumPy and SciPy write it: sampled products, a softmax of each row, and
a sparse product."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gossamer.cli.bench.references import sddmm
from gossamer.cli.bench.references.reference import Reference, ReferencePart, Shapes, blocks
from gossamer_formats import Array, SparseTensor, to_scipy

ROUNDED_STEPS = 8
"""Rounding errors of a weight that do not depend on sizes: exp, its argument, two sums, the quotient."""


def shapes(matrix: SparseTensor, features: int) -> Shapes:
    """Q, K, V and the result."""
    rows, columns = matrix.shape
    return Shapes(((rows, features), *2 * ((columns, features),)), (rows, features))


def parts(matrix: SparseTensor, *dense: Array) -> Iterator[ReferencePart]:
    """Return attention in float64.

    The error of a score is the rounding of its sum, d + 2 units of `largest`. It is also the relative error
    of its weight, and of the sum of the weights.
    """
    queries, keys, values = (operand.astype(np.float64) for operand in dense)
    csr, scale = to_scipy(matrix), 1.0 / math.sqrt(max(1, queries.shape[1]))
    width = max(1, int(csr.nnz / max(1, csr.shape[0])) * queries.shape[1])
    for rows in blocks(csr.shape[0], width):
        weights = csr[rows].astype(np.float64)
        lengths = np.diff(weights.indptr)
        at = np.repeat(np.arange(len(lengths)), lengths)
        with np.errstate(all="ignore"):
            left, right = queries[rows][at] * scale, keys[weights.indices]
            weights.data = softmax(np.einsum("ek,ek->e", left, right), weights.indptr)
            largest = np.zeros(len(lengths))
            np.maximum.at(largest, at, np.einsum("ek,ek->e", np.abs(left), np.abs(right)))
            exact, sums = weights @ values, weights @ np.abs(values)
        magnitude = 2.0 * (1.0 + largest[:, None]) * sums
        terms = (queries.shape[1] + lengths + ROUNDED_STEPS).reshape(-1, 1)
        yield ReferencePart((rows,), exact, magnitude, terms)


def softmax(scores: Array, indptr: Array) -> Array:
    """Return the softmax of the scores, row by row."""
    lengths = np.diff(indptr)
    starts, stored = indptr[:-1][lengths > 0], lengths[lengths > 0]
    if not len(stored):
        return scores
    powers = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), stored))
    shares: Array = powers / np.repeat(np.add.reduceat(powers, starts), stored)
    return shares


def scipy(matrix: SparseTensor, *dense: Array) -> Callable[[], Any]:
    """Return gathered products, followed by NumPy's reductions of rows and SciPy's product."""
    queries, keys, values = dense
    csr = to_scipy(matrix).astype(queries.dtype)
    sampled = sddmm.scipy(matrix, queries, keys)
    scale = queries.dtype.type(1.0 / math.sqrt(max(1, queries.shape[1])))

    def attended() -> Any:
        csr.data = softmax(sampled() * scale, csr.indptr)
        return csr @ values

    return attended


REFERENCE = Reference(shapes, parts, scipy)
