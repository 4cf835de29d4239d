"""Floats rounded to the fractions of tensor cores, as machine code of this CPU."""

import numpy as np
import pytest
from native_kernel import run_native

from gossamer_ir.script import parse_module

TEXT = """
@T.prim_func
def f(x: T.handle, y: T.handle, n: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (n,), "DTYPE")
    Y = T.match_buffer(y, (n,), "DTYPE")
    for i in T.serial(n // 4):
        Y[T.ramp(i * 4, 1, 4)] = T.tf32(X[T.ramp(i * 4, 1, 4)])
    for i_1 in T.serial(n % 4):
        Y[n // 4 * 4 + i_1] = T.tf32(X[n // 4 * 4 + i_1])
"""
STEP = 2.0**-10
"""The distance of numbers from 1 on whose fraction has 10 bits."""
CASES = [
    (1 + STEP / 2, 1 + STEP), (1 + 0.49 * STEP, 1.0), (-1 - STEP / 2, -1 - STEP), (0.0, 0.0),
    (-3.0, -3.0), (np.inf, np.inf), (np.nan, np.nan), (2 - STEP / 4, 2.0), (100.03, 100.0),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fractions_are_rounded_to_ten_bits_and_ties_away_from_zero(dtype):
    largest = np.finfo(dtype).max
    x, expected = np.array([*CASES, (largest, np.inf), (-largest, -np.inf)], dtype).T.copy()
    result = np.zeros_like(x)
    run_native(parse_module(TEXT.replace("DTYPE", dtype)), [x, result], len(x))
    np.testing.assert_array_equal(result, expected)


def test_a_nan_with_any_bits_stays_a_nan():
    x = np.array([0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0xFFC00000], np.uint32).view(np.float32)
    result = np.zeros_like(x)
    run_native(parse_module(TEXT.replace("DTYPE", "float32")), [x, result], len(x))
    assert np.isnan(result).all()
