"""Atomic accumulations store what the operation gives, one after the other; backends test threads."""

from __future__ import annotations

import numpy as np
import pytest
from native_kernel import run_native

from gossamer_ir.core.build import ZERO, index, index_var
from gossamer_ir.nodes import Atomic, Buffer, For, Function, Load, Module, Param

N, ROW = index_var("n"), index_var("i")
COMBINED = {"add": np.add, "min": np.minimum, "max": np.maximum}


def accumulate(op, values, initial):
    """The element that all values are combined into, one by one."""
    dtype = values.dtype.name
    buffers = (Buffer("X", (N,), dtype, "x"), Buffer("Y", (index(1),), dtype, "y"))
    update = Atomic(op, "Y", (ZERO,), Load("X", (ROW,), dtype))
    params = (Param("x", "handle"), Param("y", "handle"), Param("n", "int64"))
    body = (For("i", ZERO, N, (update,)),)
    flat = Module("flat", (Function("main", params, body, buffers=buffers),), "main")
    result = np.array([initial], dtype)
    assert run_native(flat, [values, result], values.size).status == 0
    return result[0]


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int32", "uint32", "int64", "float32", "float64"]
)
@pytest.mark.parametrize("op", COMBINED)
def test_values_are_combined_as_numpy_combines_them(op, dtype):
    values = np.array([3, 100, 0, 100, 7], dtype)
    if not dtype.startswith("u"):
        values[2] = -5
    expected = COMBINED[op].reduce(np.append(values, np.array(9, dtype)), dtype=dtype)
    assert accumulate(op, values, 9) == expected


@pytest.mark.parametrize("op", ["min", "max"])
@pytest.mark.parametrize("values", [[1, np.nan, 2], [np.nan], [np.inf, -np.inf]], ids=str)
def test_a_minimum_of_floats_keeps_nan(op, values):
    accumulated = accumulate(op, np.array(values, np.float32), 0)
    np.testing.assert_array_equal(accumulated, COMBINED[op].reduce(np.float32([0, *values])))
