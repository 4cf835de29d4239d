"""Comparisons with baselines: right results are within the bounds of errors, and wrong ones are not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gossamer.cli.comparison import accuracy
from gossamer.cli.comparison.accuracy import CHECKED_PRODUCTS, compare_with_baseline
from gossamer.cli.comparison.baselines import baseline_of
from gossamer.cli.comparison.graphs import power_law
from gossamer.cli.comparison.operator_run import operator_run
from gossamer.operators import NAMES
from gossamer_formats import from_scipy, to_scipy
from gossamer_testkit.matrices import oracles


def problem(op, graph):
    """Operands of the operator on a graph, and its result by the oracle, in the graph's dtype."""
    random = np.random.default_rng(1)
    shapes = baseline_of(op).operand_shapes(graph.shape, 9)
    dense = tuple(random.standard_normal(shape).astype(graph.dtype) for shape in shapes)
    return dense, getattr(oracles, op)(to_scipy(graph), *dense).astype(graph.dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", NAMES)
def test_a_right_result_is_within_the_tolerance_and_a_wrong_one_is_not(op, dtype):
    graph = power_law(50, 400, dtype=dtype)
    dense, result = problem(op, graph)
    comparison = compare_with_baseline(op, graph, dense, result)
    assert comparison.is_within
    assert comparison.max_relative_error <= comparison.tolerance
    wrong = result.copy()
    wrong.flat[7] += 1
    comparison = compare_with_baseline(op, graph, dense, wrong)
    assert not comparison.is_within
    assert comparison.max_relative_error > comparison.tolerance


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", NAMES)
def test_what_is_timed_beside_an_operator_computes_the_same(op, dtype):
    graph = power_law(300, 2000, dtype=dtype)
    for features in (0, 1, 200):
        work = operator_run(op, graph, features=features)
        assert compare_with_baseline(op, graph, work.dense, work.baseline()).is_within
        assert work.check().is_within
        shape = baseline_of(op).result_shape(graph.shape, graph.nnz, features)
        assert work.baseline().shape == work.out.shape == shape


def test_the_terms_of_a_dot_product_are_its_features():
    matrix = from_scipy(sparse.csr_array(np.ones((1, 1), dtype=np.float32)))
    ones = np.ones((1, 1000), dtype=np.float32)
    eps = float(np.finfo("float32").eps)
    for off, is_within in ((900 * eps, True), (1100 * eps, False)):
        comparison = compare_with_baseline(
            "sddmm", matrix, (ones, ones), np.array([1000 * (1 + off)], np.float32)
        )
        assert comparison.is_within == is_within
        assert comparison.tolerance == 1002 * eps


@pytest.mark.parametrize("width", [1, 2])
def test_every_sampled_element_is_compared(monkeypatch, width):
    monkeypatch.setattr(accuracy, "CHECKED_PRODUCTS", 7)
    graph = power_law(20, 60)
    dense = np.ones((20, width), dtype=np.float32)
    for wrong in (0, 6, 7, 59):
        result = np.full(60, width, dtype=np.float32)
        assert compare_with_baseline("sddmm", graph, (dense, dense), result).is_within
        result[wrong] = 0
        assert not compare_with_baseline("sddmm", graph, (dense, dense), result).is_within


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_result_that_is_not_finite_is_wrong_where_the_right_one_is(value):
    graph = power_law(10, 20)
    dense = np.ones((10, 2), dtype=np.float32)
    result = to_scipy(graph) @ dense
    result[3, 1] = value
    comparison = compare_with_baseline("spmm", graph, (dense,), result)
    assert not comparison.is_within
    assert comparison.max_relative_error == np.inf


def test_nan_and_infinity_agree_with_themselves():
    matrix = from_scipy(sparse.csr_array(np.array([[1.0, 0.0], [0.0, 2.0]])))
    dense = np.array([[np.nan, np.inf], [1.0, 2.0]])
    assert compare_with_baseline(
        "spmm", matrix, (dense,), np.array([[np.nan, np.inf], [2.0, 4.0]])
    ).is_within
    assert not compare_with_baseline(
        "spmm", matrix, (dense,), np.array([[np.nan, -np.inf], [2.0, 4.0]])
    ).is_within


def test_a_wrong_value_in_an_empty_row_is_found():
    matrix = from_scipy(sparse.csr_array((3, 3)))
    assert compare_with_baseline("spmm", matrix, (np.ones((3, 2)),), np.zeros((3, 2))).is_within
    assert not compare_with_baseline(
        "spmm", matrix, (np.ones((3, 2)),), np.full((3, 2), 1e-300)
    ).is_within


def test_sums_that_overflow_or_underflow_the_dtype_are_allowed():
    matrix = from_scipy(sparse.csr_array(np.array([[3e38], [1e-30]], dtype=np.float32)))
    dense = np.array([[10.0, 1e-30]], dtype=np.float32)
    with np.errstate(all="ignore"):
        result = to_scipy(matrix) @ dense
    assert np.isinf(result[0, 0])
    assert result[1, 1] == 0
    assert compare_with_baseline("spmm", matrix, (dense,), result).is_within


def test_every_block_is_compared():
    rows, columns = CHECKED_PRODUCTS // 32 + 9, 40
    matrix = from_scipy(sparse.csr_array((rows, 1), dtype=np.float32))
    result = np.zeros((rows, columns), dtype=np.float32)
    dense = np.zeros((1, columns), dtype=np.float32)
    assert compare_with_baseline("spmm", matrix, (dense,), result).is_within
    for corner in ((0, 0), (0, -1), (-1, 0), (-1, -1)):
        result[corner] = 1
        assert not compare_with_baseline("spmm", matrix, (dense,), result).is_within
        result[corner] = 0
