"""Identities of reducers are neutral for every dtype; reductions are recognized in stores."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.analysis.statements.reductions import REDUCE_OPS, identity, match_reduction
from gossamer_ir.core.build import ONE, ZERO
from gossamer_ir.core.constants import constant
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Binary, Buffer, Const, Function, Load, Module, Param, Store

NUMBERS = {
    "int8": (-128, -1, 0, 1, 127),
    "uint8": (0, 1, 255),
    "int32": (-(2**31), -1, 0, 1, 2**31 - 1),
    "int64": (-(2**63), -1, 0, 1, 2**63 - 1),
    "float32": (-np.inf, -1.5, 0.0, 2.0**-149, 1.5, np.inf),
    "float64": (-np.inf, -1.5, 0.0, 5e-324, 1.5, np.inf),
}
BOOLS = {"bool": (False, True)}
CASES = [
    (op, dtype, value)
    for op in REDUCE_OPS
    for dtype, values in (BOOLS if op in ("and", "or") else NUMBERS).items()
    for value in values
]


def combined(op, dtype, value):
    """`identity op value`, computed by the interpreter."""
    sides = (identity(op, dtype), constant(value, dtype))
    out = Buffer("out", (ONE,), dtype, "o")
    function = Function(
        "f", (Param("o", "handle"),), (Store("out", (ZERO,), Binary(op, *sides)),), buffers=(out,)
    )
    result = np.zeros(1, dtype=dtype)
    run(Module("flat", (function,), "f"), {"o": result})
    return result[0]


@pytest.mark.parametrize(("op", "dtype", "value"), CASES)
def test_the_identity_changes_nothing(op, dtype, value):
    assert combined(op, dtype, value) == value


def test_bools_have_a_smallest_and_a_largest():
    assert (identity("min", "bool"), identity("max", "bool")) == (
        Const("bool", "True"),
        Const("bool", "False"),
    )


def load(buffer, index):
    return Load(buffer, (index,), "float32")


@pytest.mark.parametrize(
    ("value", "op"),
    [
        (Binary("add", load("X", ZERO), load("Y", ONE)), "add"),
        (Binary("max", load("Y", ONE), load("X", ZERO)), "max"),
        (Binary("sub", load("X", ZERO), load("Y", ONE)), None),
        (Binary("add", load("X", ONE), load("Y", ONE)), None),
        (Binary("add", load("Y", ZERO), load("Y", ONE)), None),
        (load("X", ZERO), None),
    ],
)
def test_a_reduction_is_a_store_of_its_element_combined_with_a_value(value, op):
    reduction = match_reduction(Store("X", (ZERO,), value))
    assert (None if reduction is None else reduction.op) == op
    assert reduction is None or reduction.value == load("Y", ONE)
