"""Sparsity patterns of matrices, and the arrays that store them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gossamer_support.arrays import Array

KINDS = [("float32", "int32"), ("float64", "int64")]
"""Dtypes of values and of index arrays."""


def patterns() -> Iterator[tuple[str, Array]]:
    """Named masks, among them extreme cases."""
    rows, columns = 7, 6
    plain = np.zeros((rows, columns), bool)
    yield "no rows", np.zeros((0, columns), bool)
    yield "no columns", np.zeros((rows, 0), bool)
    yield "no elements", plain
    some = plain.copy()
    some[[1, 1, 1, 4, 5, 5], [0, 2, 5, 3, 1, 4]] = True
    yield "empty rows at both ends", some
    dense = plain.copy()
    dense[3] = True
    yield "a dense row", dense
    column = plain.copy()
    column[:, 2] = True
    yield "a dense column", column
    yield "all", ~plain
    yield "middle", np.pad(np.ones((rows, 2), bool), ((0, 0), (2, 2)))
    yield "checkered", np.add.outer(np.arange(rows), np.arange(columns)) % 2 == 0


PATTERNS = dict(patterns())


def data(shape: Any, dtype: str, step: int = 5) -> Array:
    """Small integers."""
    return (np.arange(int(np.prod(shape))) * step % 13 - 6).reshape(shape).astype(dtype)


def offsets(lengths: Any, index: str) -> Array:
    """The begin of each fiber, and the end of the last one."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(index)


def csr(mask: Array, index: str) -> tuple[Array, Array]:
    """Offsets and coordinates of the rows of a mask."""
    return offsets(mask.sum(axis=1), index), np.nonzero(mask)[1].astype(index)


def dense_of(mask: Array, values: Array, fill: float = 0.0) -> Array:
    """The dense array in float64, with the fill value for absent elements."""
    result = np.full(mask.shape, fill, np.float64)
    result[mask] = values
    return result


def dcsr(mask: Array, index: str = "int32", *, keeps: Any) -> dict[str, Any]:
    """DCSR of a mask; rows without elements are stored if `keeps` is true for them."""
    stored = np.flatnonzero(mask.any(axis=1) | keeps(np.arange(mask.shape[0])))
    indptr, indices = csr(mask[stored], index)
    return {
        "indptr_i": np.array([0, len(stored)], index), "indices_i": stored.astype(index),
        "indptr_j": indptr, "indices_j": indices, "m": mask.shape[0], "n": mask.shape[1],
        "stored": len(stored), "nnz": len(indices),
    }  # fmt: skip


def ell(mask: Array, values: Array, index: str) -> tuple[Array, Array]:
    """Coordinates and values of each row in one slot more than the longest row has elements; unused slots
    hold NaN."""
    m, n = mask.shape
    width = int(mask.sum(axis=1).max(initial=0)) + 1
    indices, slots = np.full((m, width), n, index), np.full((m, width), np.nan, values.dtype)
    used = np.arange(width) < mask.sum(axis=1)[:, None]
    indices[used], slots[used] = np.nonzero(mask)[1], values
    return indices, slots


def nothing(shape: Any, dtype: str) -> Array:
    """An array for the output."""
    return np.full(shape, np.nan, dtype)
