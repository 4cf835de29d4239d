"""Constant folding agrees with the interpreter at the limits of integer dtypes."""

from __future__ import annotations

from itertools import product
from typing import get_args

import numpy as np
import pytest

from gossamer_ir.arith.simplify import simplify
from gossamer_ir.core.build import binary, fold_constants, index, integer_value
from gossamer_ir.core.conditions import FALSE, TRUE
from gossamer_ir.core.constants import constant
from gossamer_ir.core.integers import UNBOUNDED, evaluate_int64, wrap_integer
from gossamer_ir.interpret.expressions import operators
from gossamer_ir.nodes import Binary, BinaryOp, Broadcast, Compare, Lanes, Ramp

LOWEST, HIGHEST = -(2**63), 2**63 - 1
EXTREMES = (LOWEST, LOWEST + 1, -(2**32), -65, -64, -2, -1, 0, 1, 2, 63, 64, 65, 2**62, HIGHEST)


def test_every_operator_of_integers_is_evaluated():
    assert UNBOUNDED.keys() == set(get_args(BinaryOp)) - {"div", "and", "or"}


@pytest.mark.parametrize("op", UNBOUNDED)
def test_folding_agrees_with_the_interpreter(op):
    compute = operators.binary_function(op, "int64")
    for lhs, rhs in product(EXTREMES, repeat=2):
        with np.errstate(all="ignore"):
            expected = int(compute(np.int64(lhs), np.int64(rhs)))
        assert evaluate_int64(op, lhs, rhs) == expected, (op, lhs, rhs)
        is_undefined = rhs == 0 and op in ("floordiv", "floormod")
        for made in (
            fold_constants(op, index(lhs), index(rhs)),
            simplify(Binary(op, index(lhs), index(rhs))),
        ):
            value = None if made is None else integer_value(made)
            assert value == (None if is_undefined else expected), (op, lhs, rhs)
        assert integer_value(binary(op, index(lhs), index(rhs))) in (expected, None)


@pytest.mark.parametrize("bits", [1, 8, 16, 32, 64])
def test_integers_wrap_to_their_bits(bits):
    for value in (
        0,
        1,
        -1,
        2 ** (bits - 1) - 1,
        2 ** (bits - 1),
        -(2 ** (bits - 1)) - 1,
        3 << bits,
    ):
        result = wrap_integer(value, bits)
        assert -(2 ** (bits - 1)) <= result < 2 ** (bits - 1)
        assert (result - value) % 2**bits == 0


@pytest.mark.parametrize(
    ("dtype", "base", "stride"),
    [
        ("int32", 2**31 - 2, 1),
        ("int32", -(2**31) + 1, -1),
        ("uint8", 253, 1),
        ("uint64", 2**64 - 2, 1),
    ],
)
def test_a_ramp_of_other_integers_that_wraps_is_not_compared(dtype, base, stride):
    """Its last lanes have wrapped around."""
    step = constant(stride, dtype)
    middle = Broadcast(constant(100, dtype), Lanes(4))
    for op in ("lt", "ge"):
        wraps = Compare(op, Ramp(constant(base, dtype), step, Lanes(4)), middle)
        assert simplify(wraps) == wraps
        close = Compare(op, Ramp(constant(101, dtype), constant(1, dtype), Lanes(4)), middle)
        assert simplify(close) == Broadcast(FALSE if op == "lt" else TRUE, Lanes(4))
