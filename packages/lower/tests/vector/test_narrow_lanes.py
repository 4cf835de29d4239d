"""`narrow_lanes`: vectors that were int32 are compared and reduced as such, if their values fit."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.nodes import Cast
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import collect
from gossamer_ir.verify import verify
from gossamer_lower import narrow_lanes

HEADER = """
@T.prim_func
def main(p: T.handle, q: T.handle, y: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (8,), "int32")
    Q = T.match_buffer(q, (8,), "int32")
    Y = T.match_buffer(y, (8,), "int64")
"""
NATURAL = "    T.assume(in_range(P, 0, 2147483647))\n"
FIRST, SECOND = (f'T.cast({name}[T.ramp({{0}}, 1, 4)], "int64x4")' for name in "PQ")
P0, P1, Q0 = FIRST.format(0), FIRST.format(1), SECOND.format(0)
ONES, ZEROS = "T.broadcast(T.int64(1), 4)", "T.broadcast(T.int64(0), 4)"


def module_of(body, *, facts=NATURAL):
    lines = "\n".join("    " + line for line in body.strip().splitlines())
    return parse_module(HEADER + facts + lines + "\n")


def compared(condition):
    return f"for i in T.serial(n): Y[T.ramp(0, 1, 4)] = T.Select({condition}, {ONES}, {ZEROS})"


def reduced(value, op="max"):
    return f'Y[0] = T.lane_reduce("{op}", {value})'


def widened(module):
    """The number of vectors that are widened to int64."""
    casts = collect(Cast, *module.functions[0].body)
    return sum("x" in cast.dtype for cast in casts)


NARROWED = {
    "a loaded vector": compared(f"T.broadcast(i, 4) < {Q0}"),
    "a difference of natural numbers": compared(f"T.broadcast(i, 4) < {P1} - {P0}"),
    "a constant bound": compared(f"T.broadcast(3, 4) < {Q0}"),
    "a bound that no int32 reaches": compared(f"T.broadcast(2147483647, 4) < {Q0}"),
    "a maximum": reduced(Q0),
    "the maximum of a difference": reduced(f"{P1} - {P0}"),
    "the least constant": reduced(f"T.max({Q0}, T.broadcast(T.int64(-2147483648), 4))"),
    "the greatest constant": reduced(f"T.min({Q0}, T.broadcast(T.int64(2147483647), 4))", "min"),
    "the minimum of a choice": reduced(f"T.Select({P0} < {P1}, {Q0}, {ZEROS})", "min"),
}
LEFT = {
    "a difference that may wrap": compared(f"T.broadcast(i, 4) < {Q0} - {P0}"),
    "a bound that may be negative": compared(f"T.broadcast(i - 3, 4) < {Q0}"),
    "a bound above": compared(f"{Q0} < T.broadcast(i, 4)"),
    "a sum": reduced(Q0, "add"),
    "a constant that is too large": reduced(f"T.max({Q0}, T.broadcast(T.int64(2147483648), 4))"),
    "a constant that is too small": reduced(f"T.max({Q0}, T.broadcast(T.int64(-2147483649), 4))"),
}


def results(module, n):
    values = np.array([5, 0, 2**31 - 2, 7, 7, 1, 2**31 - 2, 0], np.int32)
    edges = np.array([-(2**31), 2**31 - 1, 0, 3, -1, 4, 2**31 - 1, 2], np.int32)
    y = np.zeros(8, np.int64)
    run(verify(module), {"p": values, "q": edges, "y": y, "n": n})
    return y.tolist()


@pytest.mark.parametrize("name", NARROWED)
def test_lanes_whose_values_fit_are_narrowed(name):
    before = module_of(NARROWED[name])
    after = narrow_lanes(before)
    assert widened(after) < widened(before)
    for n in (0, 1, 4):
        assert results(after, n) == results(before, n)


@pytest.mark.parametrize("name", LEFT)
def test_other_vectors_stay(name):
    before = module_of(LEFT[name])
    assert narrow_lanes(before) == before


def test_without_the_fact_a_difference_stays():
    before = module_of(NARROWED["a difference of natural numbers"], facts="")
    assert narrow_lanes(before) == before
