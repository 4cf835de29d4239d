"""`split_vector_buffers`: vectors at constant places get buffers of their own, all other buffers stay."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.walk import every_stmt
from gossamer_lower import split_vector_buffers
from gossamer_testkit.examples import program

LANES = "4 * T.vscale()"
SUMS = f"""
Z = T.alloc_buffer((8 * T.vscale(),), "float32", scope="local")
Z[T.ramp(0, 1, {LANES})] = T.broadcast(1.0, {LANES})
Z[T.ramp({LANES}, 1, {LANES})] = T.broadcast(2.0, {LANES})
for i in T.serial(3):
    Z[T.ramp(0, 1, {LANES})] = Z[T.ramp(0, 1, {LANES})] + Z[T.ramp({LANES}, 1, {LANES})]
Y[T.ramp(0, 1, {LANES})] = Z[T.ramp(0, 1, {LANES})]
"""


def names(module):
    return [buffer.name for buffer in allocations(every_stmt(module.functions[0]))]


@pytest.mark.parametrize("vscale", [1, 4])
def test_each_vector_has_a_buffer_and_results_are_the_same(vscale):
    before = program(SUMS)
    after = split_vector_buffers(before)
    assert names(before) == ["Z"]
    assert names(after) == ["Z_0", "Z_1"]
    for module in (before, after):
        x = np.zeros(4 * vscale, np.float32)
        y, p = np.zeros_like(x), np.zeros(len(x), np.int64)
        run(module, {"x": x, "y": y, "p": p, "n": len(x)}, vscale=vscale)
        assert (y == 7).all()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f"Y[T.ramp(0, 1, {LANES})] = Z[T.ramp(0, 1, {LANES})]", "Y[0] = Z[n]"),
        (f"Z[T.ramp({LANES}, 1, {LANES})] = ", f"Z[T.ramp(4, 1, {LANES})] = "),
        (f"Z[T.ramp({LANES}, 1, {LANES})] = ", f"Z[T.ramp(n, 1, {LANES})] = "),
    ],
    ids=["one element", "across two vectors", "a variable place"],
)
def test_other_accesses_keep_the_buffer(old, new):
    assert old in SUMS
    module = program(SUMS.replace(old, new))
    assert split_vector_buffers(module) is module or names(split_vector_buffers(module)) == ["Z"]
