"""The block of scratch memory of a module: which buffers are in it, and where."""

import numpy as np
import pytest

from gossamer_ir.arith.evaluate_integer import evaluate_integer
from gossamer_ir.interchange.scratch_layout import SCRATCH_ALIGNMENT, scratch_layout
from gossamer_ir.script import parse_module

PROGRAM = """
@T.prim_func
def f(p: T.handle, n: T.int64, m: T.int64) -> None:
    T.stage("flat")
    P = T.match_buffer(p, (n,), "int32")
    A = T.alloc_buffer((n, m), "float32")
    B = T.alloc_buffer((5,), "bool")
    C = T.alloc_buffer((T.int64(P[0]),), "float64")
    D = T.alloc_buffer((n,), "float32", scope="local")
    E = T.alloc_buffer((m,), "float64")
    for i in T.serial(n):
        F = T.alloc_buffer((m,), "float64")
        F[0] = 1.0
"""


def value(expr, **sizes):
    return evaluate_integer(expr, sizes, element=None)


@pytest.mark.parametrize(("n", "m"), [(0, 0), (1, 1), (64, 1), (65, 1), (100, 7)])
def test_buffers_follow_each_other_at_aligned_offsets(n, m):
    layout = scratch_layout(parse_module(PROGRAM))
    sizes = [4 * n * m, 5, 8 * m]
    rounded = [-(-size // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT for size in sizes]
    assert [part.buffer.name for part in layout.buffers] == ["A", "B", "E"]
    offsets = [value(part.offset, n=n, m=m) for part in layout.buffers]
    assert [*offsets, value(layout.size, n=n, m=m)] == [0, *np.cumsum(rounded)]


def test_a_module_without_such_buffers_needs_none():
    text = PROGRAM.replace("(n, m)", "(T.int64(P[0]),)")
    lines = [line for line in text.splitlines() if " B = " not in line and " E = " not in line]
    layout = scratch_layout(parse_module("\n".join(lines)))
    assert (layout.buffers, layout.size) == ((), None)
