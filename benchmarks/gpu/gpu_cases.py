"""The problems that are timed on a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from scipy import sparse

from benchmarks.gpu.gpu_contenders import MATMUL_24
from benchmarks.matrices import available, load_matrix
from benchmarks.operator_case import OperatorCase
from benchmarks.operators import PROBLEMS
from gossamer_ir.support.arrays import Array

GPU_OPS = ("spmm", "sddmm", "spmv", MATMUL_24)
N_M_SIZES = ((4096, 4096, 4096), (8192, 8192, 8192), (8192, 8192, 1024))
"""Rows, columns and columns of the dense matrix of products of 2:4 matrices."""


class GpuCase(msgspec.Struct, frozen=True, eq=False):
    """A problem: its arrays, the name of its matrix, and its result in float64, to whose magnitude errors are
    relative."""

    case: OperatorCase
    matrix: str
    shape: tuple[int, int]
    nnz: int
    features: int
    expected: Array
    magnitude: Array

    def error(self, result: Array) -> float:
        """Return the largest relative error of a result; NaN if an element is."""
        with np.errstate(divide="ignore", invalid="ignore"):
            difference = np.abs(result.astype(np.float64) - self.expected)
            relative = np.where(difference == 0, 0.0, difference / self.magnitude)
        return float(relative.max(initial=0.0))


def gpu_cases(
    ops: Sequence[str],
    matrices: Sequence[str],
    features: Sequence[int],
    sizes: Sequence[tuple[int, int, int]],
) -> Iterator[GpuCase]:
    """Yield the problems of operators, on matrices that this machine has."""
    for op in ops:
        if op == MATMUL_24:
            yield from (n_m_case(*size) for size in sizes)
            continue
        widths = (1,) if op == "spmv" else features
        for name in available(matrices):
            for width in widths:
                problem = PROBLEMS[op](load_matrix(name), width)
                rows, columns = problem.csr.shape
                yield GpuCase(
                    problem.case(),
                    name,
                    (rows, columns),
                    problem.csr.nnz,
                    width,
                    problem.oracle,
                    problem.magnitude,
                )


def n_m_case(rows: int, columns: int, width: int) -> GpuCase:
    """Return a product of a 2:4 matrix of small integers in float16, so that it is exact.

    >>> made = n_m_case(4, 8, 2)
    >>> made.nnz, np.count_nonzero(made.case.operands[0], axis=1).tolist()
    (16, [4, 4, 4, 4])
    """
    generator = np.random.default_rng(24)
    left = generator.integers(1, 3, (rows, columns // 4, 4)).astype(np.float16)
    order = generator.random(left.shape).argsort(axis=2)
    left[order < 2] = 0
    left = left.reshape(rows, columns)
    right = generator.integers(-2, 3, (columns, width)).astype(np.float16)
    case = OperatorCase(
        MATMUL_24,
        MATMUL_24,
        sparse.csr_matrix(np.zeros((1, 1), np.float32)),
        (left, right),
        (rows, width),
    )
    exact = left.astype(np.float32) @ right.astype(np.float32)
    shape = (rows, columns)
    return GpuCase(case, "2:4", shape, rows * columns // 2, width, exact, np.ones_like(exact))
