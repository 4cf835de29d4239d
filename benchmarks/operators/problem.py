"""A problem for all contenders: matrix, operands, oracle result and least work.

Each operator is a subclass in its own file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec
import numpy as np
from scipy import sparse

from benchmarks.matrices import BenchmarkMatrix
from benchmarks.operator_case import OperatorCase
from gossamer_support.arrays import Array

Marker: TypeAlias = Literal["circle", "triangle", "square", "pentagon", "diamond"]
ELEMENTS_AT_ONCE = 1 << 18
"""Elements of a result that are compared at a time, so that temporary arrays stay in the cache."""


class Work(msgspec.Struct, frozen=True):
    """The least work of a kernel: bytes to and from memory, floating-point operations."""

    bytes: int
    operations: int


class Problem(ABC):
    """An operator on one matrix with `features` columns of the dense operands, which are random
    numbers in [-1, 1) of the matrix's dtype."""

    op: ClassVar[str]
    operator: ClassVar[str | None] = None
    """The operator of gossamer that computes it; None: the one with the same name."""

    title: ClassVar[str]
    color: ClassVar[str]
    marker: ClassVar[Marker]
    """Its color and marker in the picture of the roofline."""

    matrices: ClassVar[tuple[str, ...]]
    feature_sizes: ClassVar[tuple[int, ...]]
    dtypes: ClassVar[tuple[str, ...]] = ("float32",)
    threads: ClassVar[tuple[int, ...]] = (1, 2)
    """Sizes, dtypes and numbers of threads of a run in which nothing was chosen."""

    copies: ClassVar[tuple[int, int]]
    """The numbers of dense arrays with as many rows as the matrix has rows, and as it has columns."""

    def __init__(self, matrix: BenchmarkMatrix, features: int) -> None:
        self.matrix = matrix
        self.features = features
        self.operands = self.make_operands()

    @property
    def csr(self) -> sparse.csr_matrix:
        """The matrix in CSR, even if the operator uses another format."""
        return self.matrix.csr

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.csr.dtype

    @property
    def operations(self) -> int:
        """A multiplication and an addition for each nonzero and feature."""
        return 2 * self.csr.nnz * self.features

    def random(self, *shape: int, seed: int) -> Array:
        """Return operands in [-1, 1)."""
        numbers = np.random.default_rng(seed).random(shape, dtype=np.float32)
        return (2.0 * numbers - 1.0).astype(self.dtype)

    def case(self) -> OperatorCase:
        """Return the arrays for contenders."""
        return OperatorCase(
            self.op,
            self.operator or self.op,
            self.csr,
            self.operands,
            self.result_shape(),
            self.matrix.bsr,
        )

    @classmethod
    def estimated_bytes(cls, matrix: BenchmarkMatrix, features: int) -> int:
        """Return about the bytes of all arrays of the call, without making them."""
        rows, columns = matrix.csr.shape
        by_rows, by_columns = cls.copies
        itemsize = matrix.csr.dtype.itemsize
        stored = matrix.csr.nnz * (4 + itemsize)
        return stored + (by_rows * rows + by_columns * columns) * features * itemsize

    @cached_property
    def oracle(self) -> Array:
        """The result in float64."""
        operands = [operand.astype(np.float64) for operand in self.operands]
        return self.evaluate(self.csr.astype(np.float64), *operands)

    @cached_property
    def magnitude(self) -> Array:
        """The result for the absolute values of the operands in float64, to which errors are relative."""
        operands = [np.abs(operand, dtype=np.float64) for operand in self.operands]
        return self.evaluate(abs(self.csr).astype(np.float64), *operands)

    def relative_error(self, result: Array) -> float:
        """Return the largest |result - oracle| / magnitude of an element, or NaN if one is NaN."""
        flat = [np.ravel(array) for array in (result, self.oracle, self.magnitude)]
        worst = 0.0
        for start in range(0, len(flat[0]), ELEMENTS_AT_ONCE):
            actual, exact, magnitude = (array[start : start + ELEMENTS_AT_ONCE] for array in flat)
            difference = np.abs(actual.astype(np.float64) - exact)
            with np.errstate(divide="ignore", invalid="ignore"):
                relative = np.where(difference == 0, 0.0, difference / magnitude)
            worst = float(np.maximum(worst, relative.max(initial=0.0)))  # NaN stays
        return worst

    def allowed_error(self) -> float:
        """Return (n + 2) eps, where n is the number of products in the longest sum; any order is allowed."""
        return (self.longest_sum() + 2) * float(np.finfo(self.dtype).eps)

    def min_work(self) -> Work:
        """Return the least work: the matrix and each touched row of an operand are read once, the result
        is written once."""
        result = int(np.prod(self.result_shape())) * self.dtype.itemsize
        return Work(self.stored_bytes() + self.touched_bytes() + result, self.operations)

    def working_bytes(self) -> int:
        """Return the bytes of all arrays of the call, touched or not."""
        result = int(np.prod(self.result_shape())) * self.dtype.itemsize
        return self.stored_bytes() + sum(operand.nbytes for operand in self.operands) + result

    def stored_bytes(self) -> int:
        """Return the bytes that the kernel reads of the sparse matrix."""
        return self.csr.data.nbytes + self.csr.indices.nbytes + self.csr.indptr.nbytes

    def touched_columns(self) -> int:
        """Return the number of columns with a nonzero."""
        return len(np.unique(self.csr.indices))

    def longest_row(self) -> int:
        """Return the number of nonzeros of the longest row."""
        return int(np.diff(self.csr.indptr).max(initial=0))

    @abstractmethod
    def make_operands(self) -> tuple[Array, ...]:
        """Return the dense operands."""

    @abstractmethod
    def result_shape(self) -> tuple[int, ...]:
        """Return the shape of the output."""

    @abstractmethod
    def evaluate(self, matrix: sparse.csr_matrix, *operands: Array) -> Array:
        """Compute the result with SciPy and NumPy, in the dtype of the arguments."""

    @abstractmethod
    def longest_sum(self) -> int:
        """Return the number of products in the longest sum."""

    @abstractmethod
    def touched_bytes(self) -> int:
        """Return the least bytes that the kernel reads of the dense operands."""
