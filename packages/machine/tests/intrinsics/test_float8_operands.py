"""Elements of float8: their values, and the expressions that decode them."""

import math

import numpy as np
import pytest

from gossamer_ir.core.build import index_var
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Binary, Const, Load
from gossamer_ir.script import parse_module
from gossamer_machine.intrinsics.float8_operands import (
    FLOAT8_OPERANDS,
    float8_factor,
    float8_text,
    float8_value,
)

SCRIPT = """
@T.prim_func
def decode(x: T.handle, y: T.handle) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    X = T.match_buffer(x, (256,), "uint8")
    Y = T.match_buffer(y, (256,), "float32")
    for i in T.serial(256):
        Y[i] = {value}
"""
FIELDS = {"float8_e4m3": (4, 3), "float8_e5m2": (5, 2)}
"""The bits of the exponent and of the fraction."""


def decoded(byte, dtype):
    """The value of a byte, by the definition of the format (OCP 8-bit floating point, revision 1.0)."""
    exponent_bits, fraction_bits = FIELDS[dtype]
    sign = -1.0 if byte >> 7 else 1.0
    exponent = byte >> fraction_bits & (1 << exponent_bits) - 1
    fraction = byte & (1 << fraction_bits) - 1
    bias = (1 << exponent_bits - 1) - 1
    if dtype == "float8_e4m3" and byte & 0x7F == 0x7F:
        return math.nan
    if dtype == "float8_e5m2" and exponent == 31:
        return math.nan if fraction else sign * math.inf
    hidden = (1 << fraction_bits) if exponent else 0
    return sign * math.ldexp(hidden + fraction, max(exponent, 1) - bias - fraction_bits)


@pytest.mark.parametrize("dtype", FLOAT8_OPERANDS)
def test_all_bytes_have_their_values(dtype):
    x, y = np.arange(256, dtype=np.uint8), np.zeros(256, np.float32)
    run(parse_module(SCRIPT.format(value=float8_text("X[i]", dtype))), {"x": x, "y": y})
    expected = np.array([decoded(byte, dtype) for byte in range(256)], np.float32)
    np.testing.assert_array_equal(y, expected)
    ordinary = ~np.isnan(y)
    np.testing.assert_array_equal(np.signbit(y)[ordinary], np.signbit(expected)[ordinary])


@pytest.mark.parametrize("dtype", FLOAT8_OPERANDS)
def test_the_script_is_that_of_the_expression(dtype):
    (loop,) = parse_module(SCRIPT.format(value=float8_text("X[i]", dtype))).functions[0].body
    load = Load("X", (index_var("i"),), "uint8")
    assert loop.body[0].value == float8_value(load, dtype)
    assert float8_factor(loop.body[0].value) == (load, dtype)


def test_other_expressions_decode_nothing():
    load = Load("X", (index_var("i"),), "uint8")
    value = float8_value(load, "float8_e4m3")
    assert float8_factor(load) is None
    assert float8_factor(Binary("mul", value, Const("float32", "2.0"))) is None
    assert float8_factor(float8_value(Const("uint8", "1"), "float8_e5m2")) is None
