"""The instructions of CPUs, derived from the record of each math function."""

from __future__ import annotations

import pytest

from gossamer_ir.core.math_functions import FUNCTIONS, INSTRUCTIONS, instructions_with

BASE = {"sqrt", "abs", "popcount", "ctz"}
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
