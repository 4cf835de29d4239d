"""The instructions of CPUs, and the bounds of results, derived from the record of each math function."""

from __future__ import annotations

import pytest

from gossamer_ir.analysis.bounds.value_bounds import ValueBounds, limit_of
from gossamer_ir.arith.nonaffine_bounds import bounds_of_call, strip_widening
from gossamer_ir.core.build import index_var
from gossamer_ir.core.math_functions import FUNCTIONS, INSTRUCTIONS, MathFunction, instructions_with
from gossamer_ir.nodes import Call, Cast, Function, Var

BASE = {"sqrt", "abs", "tf32", "popcount", "ctz"}
ROUNDINGS = {"floor", "ceil", "trunc", "round"}


@pytest.mark.parametrize(
    ("features", "functions"),
    [
        ((), BASE),
        (("sse4.1", "avx2"), BASE | ROUNDINGS),
        (("fma",), BASE | {"fma"}),
        (("fma", "sse4.1"), INSTRUCTIONS),
    ],
)
def test_a_cpu_has_the_instructions_of_its_features(features, functions):
    assert instructions_with(features) == functions


def test_instructions_are_functions():
    assert BASE | ROUNDINGS | {"fma"} == INSTRUCTIONS
    assert set(FUNCTIONS) > INSTRUCTIONS


@pytest.mark.parametrize("counts_bits", [False, True])
def test_only_a_function_that_counts_bits_has_bounds(monkeypatch, counts_bits):
    record = MathFunction("made_up", 1, "integers", counts_bits=counts_bits)
    monkeypatch.setitem(FUNCTIONS, "made_up", record)
    signed = Call("made_up", (index_var("i"),), "int64")
    assert bool([*bounds_of_call(signed, signed)]) == counts_bits
    most = ValueBounds(Function("f", (), ())).bound(signed)
    assert most == (64 if counts_bits else limit_of("int64"))
    unsigned = Call("made_up", (Var("u", "uint64"),), "uint64")
    widened = Cast("int64", unsigned)
    assert strip_widening(widened) == (unsigned if counts_bits else widened)
