"""Short rows times a vector, with several rows in the lanes of a vector, against SciPy in float64."""

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
from gossamer_ir.nodes import Allocate, Guard
from gossamer_ir.transform.retype_module import retype_module
from gossamer_ir.transform.specialize import specialize
from gossamer_ir.traversal.walk import collect

SHORT = Stats(rows=64, columns=64, nnz=128, longest_row=6, empty_rows=1)
WIDE = "generic-cpu:gathers=fast,vector_bits=512"
NARROW = "generic-cpu:gathers=fast,vector_bits=256"
"""Vectors that hold windows, and vectors that do not. They run on any machine, since LLVM splits vectors that
are wider than its registers."""
WINDOW_ROWS = 8
"""The rows that share a window of 32 elements."""
ROWS = (0, 1, 7, 8, 15, 16, 17, 33, 4000)
"""Numbers of rows around those that fill the lanes of vectors."""


def short_rows(rows, dtype, index_dtype, *, longest=6, columns=40):
    """Rows of 0 to `longest` elements in any order of columns, and as many that may be repeated."""
    random = np.random.default_rng(rows)
    lengths = random.integers(0, longest + 1, rows)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(index_dtype)
    indices = random.integers(0, columns, indptr[-1]).astype(index_dtype)
    data = random.integers(-4, 5, indptr[-1]).astype(dtype)
    return sparse.csr_array((data, indices, indptr), (rows, columns))


@pytest.mark.parametrize("target", [WIDE, NARROW])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_any_number_of_short_rows(dtype, index_dtype, threads, target):
    module = retype_module(module_of(PROGRAM, Variant()), dtype=dtype, index_dtype=index_dtype)
    resolved = resolve_elsewhere(target)[1]
    decision = gs.explain(module, stats=SHORT, target=target).decisions[0]
    assert decision.what == "rows in lanes, until the longest of them ends"
    before = gs.get_num_threads()
    gs.set_num_threads(threads)
    try:
        kernel = gs.compile(module, schedule=schedule_for_target(module, resolved, SHORT))
        for rows in ROWS:
            matrix = short_rows(rows, dtype, index_dtype)
            x = np.random.default_rng(1).integers(-3, 4, 40).astype(dtype)
            y = np.full(rows, 77, dtype)
            kernel(a=matrix.data, x=x, y=y, indptr=matrix.indptr, indices=matrix.indices)
            np.testing.assert_array_equal(y, matrix.astype(np.float64) @ x)
    finally:
        gs.set_num_threads(before)


@pytest.mark.parametrize("target", [WIDE, NARROW])
def test_a_longer_row_than_expected_is_right_too(target):
    module = module_of(PROGRAM, Variant())
    resolved = resolve_elsewhere(target)[1]
    kernel = gs.compile(module, schedule=schedule_for_target(module, resolved, SHORT))
    matrix = sparse.vstack([short_rows(20, "float32", "int32"), np.ones((1, 40), np.float32)])
    matrix = sparse.csr_array(matrix)
    x, y = np.arange(40, dtype=np.float32), np.empty(21, np.float32)
    kernel(a=matrix.data, x=x, y=y, indptr=matrix.indptr, indices=matrix.indices)
    np.testing.assert_array_equal(y, matrix.astype(np.float64) @ x)


@pytest.mark.parametrize("target", [WIDE, NARROW])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("most", [31, 32, 33, 40])
def test_rows_that_just_fit_into_a_window_and_that_do_not(dtype, most, target):
    module = retype_module(module_of(PROGRAM, Variant()), dtype=dtype, index_dtype="int64")
    resolved = resolve_elsewhere(target)[1]
    kernel = gs.compile(module, schedule=schedule_for_target(module, resolved, SHORT))
    lengths = np.full(WINDOW_ROWS * 4, 0)
    # In one group the longest row is the first, in the others the last; the last group ends the arrays.
    lengths[[0, 15, 23, 31]] = most - 5
    lengths[[7, 8, 16, 24]] = 5
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    random = np.random.default_rng(most)
    indices = random.integers(0, 40, indptr[-1])
    matrix = sparse.csr_array(
        (random.integers(-4, 5, indptr[-1]).astype(dtype), indices, indptr), (len(lengths), 40)
    )
    x, y = np.arange(40).astype(dtype), np.empty(len(lengths), dtype)
    kernel(a=matrix.data, x=x, y=y, indptr=indptr, indices=indices)
    np.testing.assert_array_equal(y, matrix.astype(np.float64) @ x)


@pytest.mark.parametrize("target", [WIDE, NARROW])
def test_infinite_operands_beside_the_end_of_a_row_change_nothing(target):
    module = module_of(PROGRAM, Variant())
    resolved = resolve_elsewhere(target)[1]
    kernel = gs.compile(module, schedule=schedule_for_target(module, resolved, SHORT))
    matrix = sparse.csr_array(np.array([[1.0, 0.0], [1.0, 1.0]], np.float32))
    x, y = np.array([1.0, np.inf], np.float32), np.empty(2, np.float32)
    kernel(a=matrix.data, x=x, y=y, indptr=matrix.indptr, indices=matrix.indices)
    np.testing.assert_array_equal(y, [1.0, np.inf])


@pytest.mark.parametrize(
    ("target", "windows"),
    [(WIDE, {"A_data_window": "32", "J_indices_window": "32"}), (NARROW, {})],
)
@pytest.mark.parametrize("sizes", [{}, {"m": 64}, {"m": 60}])
def test_results_and_the_extent_are_of_one_group_and_nothing_is_checked(sizes, target, windows):
    module = specialize(module_of(PROGRAM, Variant()), sizes)
    flat = flat_module(module, stats=SHORT, target=target)
    allocations = [
        node.buffer for function in flat.functions for node in collect(Allocate, *function.body)
    ]
    assert {buffer.name: buffer.shape[0].text for buffer in allocations} == {
        "j_extent": "1",
        "Y_data_local": "8",
        **windows,
    }
    assert not [guard for function in flat.functions for guard in collect(Guard, *function.body)]
