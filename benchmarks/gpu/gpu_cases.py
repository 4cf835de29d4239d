"""The problems that are timed on a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from scipy import sparse

from benchmarks.gpu.gpu_contenders import BLOCK_SPMM, MATMUL_24
from benchmarks.matrices import available, load_matrix
from benchmarks.operator_case import OperatorCase
from benchmarks.operators import PROBLEMS
from gossamer_support.arrays import Array

GPU_OPS = ("spmm", "sddmm", "spmv", BLOCK_SPMM, MATMUL_24)
PRODUCT_SIZES = ((4096, 4096, 4096), (8192, 8192, 8192), (8192, 8192, 1024))
"""Rows, columns and columns of the dense matrix of products of 2:4 matrices and of blocks."""
PRODUCT_DTYPES = ("float16", "bfloat16", "int8", "float8_e4m3")
"""The dtypes of the operands of these products."""
BLOCK_SIZE, BLOCK_DENSITY = 32, 0.1
"""The rows of a block, and the part of the blocks that is stored, of products of blocks."""
DTYPES_OF_BLOCKS = ("float16", "bfloat16")


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

    @property
    def dtype(self) -> str:
        """The dtype in which contenders compute."""
        return self.case.value_dtype or self.case.operands[0].dtype.name

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
    dtypes: Sequence[str],
) -> Iterator[GpuCase]:
    """Yield the problems of operators, on matrices that this machine has."""
    for op in ops:
        if op == MATMUL_24:
            yield from (n_m_case(*size, dtype) for size in sizes for dtype in dtypes)
            continue
        if op == BLOCK_SPMM:
            yield from (
                block_case(*size, dtype)
                for size in sizes
                for dtype in dtypes
                if dtype in DTYPES_OF_BLOCKS
            )
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


def block_case(rows: int, columns: int, width: int, dtype: str) -> GpuCase:
    """Return a product of a matrix in blocks of small integers, so that it is exact in each dtype.

    >>> made = block_case(64, 128, 8, "float16")
    >>> made.case.bsr.blocksize, made.nnz % 1024
    ((32, 32), 0)
    """
    generator = np.random.default_rng(32)
    grid = (rows // BLOCK_SIZE, columns // BLOCK_SIZE)
    pattern = sparse.csr_matrix(generator.random(grid) < BLOCK_DENSITY)
    shape = (pattern.nnz, BLOCK_SIZE, BLOCK_SIZE)
    blocks = generator.integers(-2, 3, shape, np.int8)
    stored = (blocks, pattern.indices.astype(np.int32), pattern.indptr.astype(np.int32))
    bsr = sparse.bsr_matrix(stored, shape=(rows, columns))
    right = generator.integers(-2, 3, (columns, width), np.int8)
    case = OperatorCase(
        BLOCK_SPMM, "spmm", bsr.tocsr(), (right,), (rows, width), bsr=bsr, value_dtype=dtype
    )
    exact = bsr.astype(np.float32) @ right.astype(np.float32)
    return GpuCase(case, "blocks", (rows, columns), blocks.size, width, exact, np.ones_like(exact))


def n_m_case(rows: int, columns: int, width: int, dtype: str) -> GpuCase:
    """Return a product of a 2:4 matrix of small integers, so that it is exact in each dtype.

    >>> made = n_m_case(4, 8, 2, "float16")
    >>> made.nnz, np.count_nonzero(made.case.operands[0], axis=1).tolist()
    (16, [4, 4, 4, 4])
    """
    generator = np.random.default_rng(24)
    left = generator.integers(1, 3, (rows, columns // 4, 4), np.int8)
    order = generator.random(left.shape, np.float32).argsort(axis=2)
    left[order < 2] = 0
    left = left.reshape(rows, columns)
    right = generator.integers(-2, 3, (columns, width), np.int8)
    case = OperatorCase(
        MATMUL_24,
        MATMUL_24,
        sparse.csr_matrix(np.zeros((1, 1), np.float32)),
        (left, right),
        (rows, width),
        value_dtype=dtype,
    )
    exact = left.astype(np.float32) @ right.astype(np.float32)
    shape = (rows, columns)
    return GpuCase(case, "2:4", shape, rows * columns // 2, width, exact, np.ones_like(exact))
