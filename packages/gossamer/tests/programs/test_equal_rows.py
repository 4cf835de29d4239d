"""Rows times a vector in groups that share gathers where columns are equal, against SciPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.compilation.pipeline import flat_module, schedule_for_target
from gossamer.operator_calls.operator_program import Variant, module_of
from gossamer.operators.spmv import PROGRAM
from gossamer.targets.resolve_target import resolve_elsewhere
from gossamer_ir.interchange.records import Stats
from gossamer_ir.nodes import Guard, IfThenElse
from gossamer_ir.transform.retype_module import retype_module
from gossamer_ir.traversal.walk import collect

STATS = Stats(rows=3000, columns=3000, nnz=90_000, longest_row=40, empty_rows=0, equal_rows=2000)
TARGET = "generic-cpu:gathers=fast,vector_bits=512"
COLUMNS = 40


def kernel_of(dtype, index_dtype):
    module = retype_module(module_of(PROGRAM, Variant()), dtype=dtype, index_dtype=index_dtype)
    return gs.compile(
        module, schedule=schedule_for_target(module, resolve_elsewhere(TARGET)[1], STATS)
    )


def matrix_of(rows, dtype="float32", index_dtype="int32"):
    """Return a matrix with columns in any order: each row has those of the row before, some of them, others,
    or none."""
    random = np.random.default_rng(COLUMNS)
    columns = []
    for row in range(rows):
        before = columns[-1] if columns else random.integers(0, COLUMNS, 21)
        if row % 7 == 3:
            before = before[: random.integers(0, len(before) + 1)]
        elif row % 7 == 5:
            before = np.concatenate([before, random.integers(0, COLUMNS, 9)])
        elif row % 7 == 6:
            before = random.integers(0, COLUMNS, random.integers(0, 30))
        columns.append(before)
    indptr = np.cumsum([0, *map(len, columns)]).astype(index_dtype)
    indices = np.concatenate([[], *columns]).astype(index_dtype)
    data = random.integers(-4, 5, indptr[-1]).astype(dtype)
    return sparse.csr_array((data, indices, indptr), (rows, COLUMNS))


def product_of(kernel, matrix, x):
    y = np.full(matrix.shape[0], 77, x.dtype)
    kernel(a=matrix.data, x=x, y=y, indptr=matrix.indptr, indices=matrix.indices)
    return y


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_any_number_of_rows(dtype, index_dtype, threads):
    before = gs.get_num_threads()
    gs.set_num_threads(threads)
    try:
        kernel = kernel_of(dtype, index_dtype)
        x = np.random.default_rng(1).integers(-3, 4, COLUMNS).astype(dtype)
        for rows in (0, 1, 2, 3, 4, 50, 3000):
            matrix = matrix_of(rows, dtype, index_dtype)
            expected = matrix.astype(np.float64) @ x
            np.testing.assert_array_equal(product_of(kernel, matrix, x), expected)
    finally:
        gs.set_num_threads(before)


def test_a_lane_that_the_row_before_does_not_have_is_gathered():
    """A row of one element, then one whose further columns are 0."""
    kernel = kernel_of("float32", "int32")
    indices = np.array([5, 5, 0, 0, 0, 5, 0], np.int32)
    indptr = np.array([0, 1, 5, 7], np.int32)
    matrix = sparse.csr_array((np.ones(7, np.float32), indices, indptr), (3, COLUMNS))
    x = np.arange(1, COLUMNS + 1, dtype=np.float32)
    assert product_of(kernel, matrix, x).tolist() == [6.0, 9.0, 7.0]


def test_elements_that_are_not_gathered_change_nothing():
    """Infinite elements in columns that only one row of a group has."""
    x = np.ones(COLUMNS, np.float32)
    x[7] = np.inf
    matrix = sparse.csr_array(np.eye(6, COLUMNS, 3, dtype=np.float32) + np.eye(6, COLUMNS))
    expected = np.full(6, 2.0)
    expected[4] = np.inf
    result = product_of(kernel_of("float32", "int32"), matrix.astype(np.float32), x)
    np.testing.assert_array_equal(result, expected)


def test_gathers_are_shared_and_nothing_is_checked():
    flat = flat_module(module_of(PROGRAM, Variant()), stats=STATS, target=TARGET)
    choices = [
        choice for function in flat.functions for choice in collect(IfThenElse, *function.body)
    ]
    assert len(set(choices)) == 2
    assert not [guard for function in flat.functions for guard in collect(Guard, *function.body)]


def test_a_matrix_of_finite_elements_has_the_schedule():
    nodes = sparse.random_array((40, 40), density=0.3, rng=np.random.default_rng(0))
    matrix = sparse.csr_array(sparse.kron(nodes, np.ones((3, 3)), format="csr"))
    stats = gs.from_scipy(matrix).stats
    report = gs.explain(module_of(PROGRAM, Variant()), stats=stats, target=TARGET)
    assert report.decisions[0].what.startswith("3 rows side by side")
