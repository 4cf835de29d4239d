"""One task for all contenders: a matrix, an operand, the right answer and the least work."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import sparse

Op: TypeAlias = Literal["spmm", "spmv"]
Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Work:
    """What the kernel must at least do: bytes to and from memory, floating-point operations."""

    bytes: int
    operations: int


@dataclass(frozen=True)
class Problem:
    """`operand` is B of shape (columns, features), or x of shape (columns,) for SpMV."""

    op: Op
    name: str
    matrix: sparse.csr_matrix
    operand: Array

    @property
    def features(self) -> int:
        return 1 if self.operand.ndim == 1 else int(self.operand.shape[1])

    def empty_result(self) -> Array:
        """An output whose every element must be written: it starts as NaN."""
        return np.full((self.matrix.shape[0], *self.operand.shape[1:]), np.nan, dtype=np.float32)

    @cached_property
    def reference(self) -> Array:
        """The result in float64."""
        return np.asarray(self.matrix.astype(np.float64) @ self.operand.astype(np.float64))

    @cached_property
    def magnitude(self) -> Array:
        """|A| |B| in float64: what an error is measured against."""
        return np.asarray(
            abs(self.matrix).astype(np.float64) @ np.abs(self.operand, dtype=np.float64)
        )


def make_problem(op: Op, name: str, matrix: sparse.csr_matrix, features: int) -> Problem:
    """A problem with a random operand in [-1, 1)."""
    random = np.random.default_rng(2)
    shape = (matrix.shape[1],) if op == "spmv" else (matrix.shape[1], features)
    operand = (2.0 * random.random(shape, dtype=np.float32) - 1.0).astype(np.float32)
    return Problem(op, name, matrix, operand)


def least_work(problem: Problem) -> Work:
    """A is read once, each row of B that a column touches once, C is written once.

    >>> matrix = sparse.csr_matrix(np.array([[1, 0, 2], [0, 0, 3]], dtype=np.float32))
    >>> least_work(make_problem("spmm", "tiny", matrix, 4))  # 3 * 8 + 3 * 4 + 2 * 16 + 2 * 16
    Work(bytes=100, operations=24)
    """
    matrix, features = problem.matrix, problem.features
    touched = len(np.unique(matrix.indices))
    stored = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    dense = (touched + matrix.shape[0]) * features * problem.operand.itemsize
    return Work(stored + dense, 2 * matrix.nnz * features)


def relative_error(problem: Problem, result: Array) -> float:
    """The largest |result - reference| / (|A| |B|), element by element; NaN when one is NaN."""
    difference = np.abs(result.astype(np.float64) - problem.reference)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(difference == 0, 0.0, difference / problem.magnitude)
    return float(relative.max(initial=0.0))


def allowed_error(problem: Problem) -> float:
    """(n + 2) eps for the longest sum of n float32 products, in any order."""
    longest = int(np.diff(problem.matrix.indptr).max(initial=0))
    return (longest + 2) * float(np.finfo(np.float32).eps)
