"""The oracles against exact rational arithmetic and dense NumPy."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer_testkit import (
    attention,
    attention_bound,
    bsr_spmm,
    csr_cases,
    csr_matrices,
    dense_operands,
    from_rows,
    max_relative_error,
    sddmm,
    sddmm_magnitude,
    spmm,
    spmm_magnitude,
    spmv,
    spmv_magnitude,
    tolerance,
)

INF, NAN = float("inf"), float("nan")
FINITE = [case for case in csr_cases() if np.isfinite(case.data).all()]


def dense_of(matrix):
    dense = np.zeros(matrix.shape)
    np.add.at(dense, (matrix.rows, matrix.indices), matrix.data)
    return dense


@pytest.mark.parametrize("case", FINITE, ids=lambda case: case.name)
def test_products_agree_with_dense_ones(case):
    operand = np.arange(case.shape[1] * 3, dtype=np.float64).reshape(-1, 3) - 4
    np.testing.assert_array_equal(spmm(case, operand), dense_of(case) @ operand)
    np.testing.assert_array_equal(spmv(case, operand[:, 0]), dense_of(case) @ operand[:, 0])
    expected = np.abs(dense_of(case)) @ np.abs(operand)
    magnitude = spmm_magnitude(case, operand)
    assert (magnitude >= expected).all()
    if case.is_canonical:
        np.testing.assert_array_equal(magnitude, expected)
        np.testing.assert_array_equal(spmv_magnitude(case, operand[:, 0]), expected[:, 0])


@pytest.mark.parametrize("case", FINITE, ids=lambda case: case.name)
def test_sampled_products_agree_with_dense_ones(case):
    x, y = (np.arange(size * 3).reshape(-1, 3) % 7 - 3.0 for size in case.shape)
    at = case.rows, case.indices
    np.testing.assert_array_equal(sddmm(case, x, y), (x @ y.T)[at])
    np.testing.assert_array_equal(sddmm_magnitude(case, x, y), (np.abs(x) @ np.abs(y).T)[at])


@pytest.mark.parametrize("scale", [None, 0.25])
@pytest.mark.parametrize("case", FINITE, ids=lambda case: case.name)
def test_attention_agrees_with_dense_arithmetic(case, scale):
    random = np.random.default_rng(1)
    rows, columns = case.shape
    q, k, v = (random.standard_normal((size, 9)) for size in (rows, columns, columns))
    times = np.zeros(case.shape)
    np.add.at(times, (case.rows, case.indices), 1.0)
    powers = times * np.exp(q @ k.T * (1 / 3 if scale is None else scale))
    expected = powers @ v / np.maximum(powers.sum(axis=1, keepdims=True), 1e-300)
    result, bound = (call(case, q, k, v, scale=scale) for call in (attention, attention_bound))
    assert result.shape == bound.shape == expected.shape
    assert (np.abs(result - expected) <= np.finfo("float64").eps * bound).all()
    assert (bound <= 100 * (9 + case.longest_row + 8)).all(), (
        "the bound must not hide a wrong result"
    )


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (5, 2)])
@pytest.mark.parametrize("case", FINITE, ids=lambda case: case.name)
def test_products_of_blocks_agree_with_dense_ones(case, shape):
    """Each stored element stands for a block: its value times the numbers of a pattern."""
    pattern = np.arange(np.prod(shape)).reshape(shape) - 2.0
    operand = np.arange(case.shape[1] * shape[1] * 3).reshape(-1, shape[1], 3) % 11 - 4.0
    data = case.data[:, None, None].astype(np.float64) * pattern
    result = bsr_spmm(case.indptr, case.indices, data, dense=operand)
    expected = np.kron(dense_of(case), pattern) @ operand.reshape(-1, 3)
    np.testing.assert_array_equal(result.reshape(-1, 3), expected)


def test_absent_elements_take_no_part():
    matrix = from_rows("a", 2, rows=[[(0, 1.0)], [], [(1, 0.0)]])
    np.testing.assert_array_equal(spmv(matrix, np.array([2.0, INF])), [2, 0, NAN])


@settings(max_examples=50, deadline=None)
@given(csr_matrices(special=False), st.data())
def test_the_oracle_is_exact_on_integers(matrix, data):
    operand = data.draw(dense_operands((matrix.shape[1], 2), dtype="float64"))
    expected = [[Fraction(0)] * 2 for _ in range(matrix.shape[0])]
    for row, column, value in zip(matrix.rows, matrix.indices, matrix.data, strict=True):
        for at in range(2):
            expected[row][at] += Fraction(float(value)) * Fraction(operand[column, at])
    assert spmm(matrix, operand).tolist() == expected


ERRORS = {
    "nothing": ([], [], [], 0.0),
    "equal": ([1.0, INF, -INF, NAN], [1.0, INF, -INF, NAN], [1.0, INF, INF, NAN], 0.0),
    "off by a half": ([1.0, 2.5], [1.0, 2.0], [1.0, 4.0], 0.125),
    "the largest counts": ([1.0, 2.0], [2.0, 4.0], [1.0, 1.0], 2.0),
    "infinity missed": ([1.0], [INF], [INF], INF),
    "infinity of the other sign": ([INF], [-INF], [INF], INF),
    "NaN missed": ([1.0], [NAN], [NAN], INF),
    "NaN out of nowhere": ([NAN], [1.0], [1.0], INF),
    "zero expected": ([1e-30], [0.0], [0.0], INF),
    "zeros of both signs": ([-0.0], [0.0], [0.0], 0.0),
}


@pytest.mark.parametrize(
    ("result", "oracle", "magnitude", "error"), ERRORS.values(), ids=ERRORS.keys()
)
def test_errors_are_measured_element_by_element(result, oracle, magnitude, error):
    arrays = (np.array(result, np.float32), np.array(oracle))
    assert max_relative_error(*arrays, magnitude=np.array(magnitude)) == error


def test_another_shape_is_infinitely_wrong():
    assert max_relative_error(np.zeros(2), np.zeros(3), magnitude=np.ones(3)) == INF


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_tolerance_bounds_sums_in_every_order(dtype):
    random = np.random.default_rng(1)
    for length in (1, 2, 17, 1000):
        values = random.standard_normal((2, length)).astype(dtype)
        exact = sum(Fraction(float(a)) * Fraction(float(b)) for a, b in values.T)
        magnitude = float(np.abs(values[0].astype(float) * values[1]).sum())
        forward = np.cumsum(values[0] * values[1], dtype=dtype)[-1]
        for result in (forward, values[0] @ values[1]):
            error = abs(Fraction(float(result)) - exact) / Fraction(magnitude)
            assert error <= tolerance(length, dtype) * (1 + 1e-12)


def test_the_tolerance_is_neither_zero_nor_generous():
    assert tolerance(100, "float32") == pytest.approx(100 * 2.0**-24, rel=1e-4)
    assert tolerance(2**24, "float32") == INF
