"""The operators whose instructions are counted: the schedule of each, and its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.parts.helpers.emulated_instructions import ArgumentOfC
from benchmarks.scalable_schedules import (
    bsr_spmm_schedule,
    sddmm_schedule,
    spmm_schedule,
    spmv_schedule,
)
from gossamer_schedule import ScheduleBuilder

FEATURES = 128
ROWS, COLUMNS, DENSITY, BLOCK = 24, 400, 0.16, 8


class CountedProblem(NamedTuple):
    """The arguments of the C loop of an operator, whose last one is the result, those of a kernel by name,
    the name of the kernel's result, and the expected result."""

    loop: Sequence[ArgumentOfC]
    kernel: Mapping[str, ArgumentOfC]
    result: str
    expected: np.ndarray[Any, Any]
    nnz: int
    features: int


class CountedOperator(NamedTuple):
    """The schedule of an operator in scalable vectors, and its problem from a source of random numbers. Its C
    loop is the file with its name in `contenders/c_loops`."""

    schedule: Callable[[], ScheduleBuilder]
    problem_from: Callable[[np.random.Generator], CountedProblem]

    def problem(self) -> CountedProblem:
        """Return arguments of small integers, the same in every run."""
        return self.problem_from(np.random.default_rng(0))


def _spmv_problem(random: np.random.Generator) -> CountedProblem:
    matrix, arrays = _csr_arguments(random)
    x = _integers(random, COLUMNS)
    y = np.full(ROWS, np.nan, np.float32)
    given = {**arrays, "a": matrix.data, "x": x, "y": y}
    loop = (ROWS, matrix.indptr, matrix.indices, matrix.data, x, y)
    return CountedProblem(loop, given, "y", matrix @ x, matrix.nnz, 1)


def _spmm_problem(random: np.random.Generator) -> CountedProblem:
    matrix, arrays = _csr_arguments(random)
    b = _integers(random, COLUMNS, FEATURES)
    c = np.full((ROWS, FEATURES), np.nan, np.float32)
    given = {**arrays, "a": matrix.data, "b": b, "c": c}
    loop = (ROWS, FEATURES, matrix.indptr, matrix.indices, matrix.data, b, c)
    return CountedProblem(loop, given, "c", matrix @ b, matrix.nnz, FEATURES)


def _sddmm_problem(random: np.random.Generator) -> CountedProblem:
    matrix, arrays = _csr_arguments(random)
    y = _integers(random, COLUMNS, FEATURES)
    x = _integers(random, ROWS, FEATURES)
    out = np.full(matrix.nnz, np.nan, np.float32)
    rows, columns = matrix.nonzero()
    given = {**arrays, "x": x, "y": y, "out": out}
    products = np.einsum("ek,ek->e", x[rows], y[columns])
    loop = (ROWS, FEATURES, matrix.indptr, matrix.indices, x, y, out)
    return CountedProblem(loop, given, "out", products, matrix.nnz, FEATURES)


def _bsr_spmm_problem(random: np.random.Generator) -> CountedProblem:
    rows, columns = ROWS // BLOCK, COLUMNS // BLOCK
    blocks = _random_csr(random, rows, columns)
    values = _integers(random, blocks.nnz, BLOCK, BLOCK)
    b = _integers(random, columns, BLOCK, FEATURES)
    c = np.full((rows, BLOCK, FEATURES), np.nan, np.float32)
    matrix = sparse.bsr_array((values, blocks.indices, blocks.indptr), (ROWS, COLUMNS))
    given = {
        "a": values, "b": b, "c": c, "indptr": blocks.indptr, "indices": blocks.indices,
        "nb": rows, "mb": columns, "nnzb": blocks.nnz, "blk": BLOCK, "feat_size": FEATURES,
    }  # fmt: skip
    expected = (matrix @ b.reshape(COLUMNS, FEATURES)).reshape(c.shape)
    loop = (rows, BLOCK, FEATURES, blocks.indptr, blocks.indices, values, b, c)
    return CountedProblem(loop, given, "c", expected, values.size, FEATURES)


def _csr_arguments(random: np.random.Generator) -> tuple[Any, dict[str, ArgumentOfC]]:
    """Return a matrix of small integers, and the arguments of kernels for its pattern and the sizes."""
    matrix = _random_csr(random, ROWS, COLUMNS)
    matrix.data[:] = _integers(random, matrix.nnz)
    sizes = {"m": ROWS, "n": COLUMNS, "nnz": matrix.nnz, "feat_size": FEATURES}
    return matrix, {"indptr": matrix.indptr, "indices": matrix.indices, **sizes}


def _random_csr(random: np.random.Generator, rows: int, columns: int) -> Any:
    return sparse.random_array(
        (rows, columns), density=DENSITY, format="csr", dtype=np.float32, rng=random
    )


def _integers(random: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    return random.integers(1, 4, shape).astype(np.float32)


COUNTED = {
    "spmv": CountedOperator(spmv_schedule, _spmv_problem),
    "spmm": CountedOperator(spmm_schedule, _spmm_problem),
    "sddmm": CountedOperator(sddmm_schedule, _sddmm_problem),
    "bsr_spmm": CountedOperator(bsr_spmm_schedule, _bsr_spmm_problem),
}
"""The operators, by the names of their C loops."""
