"""The region of an earlier block that one iteration of a loop requires."""

from __future__ import annotations

import pytest

from gossamer_ir.arith.affine import expr_of
from gossamer_ir.script import parse_module, print_expr
from gossamer_schedule.cursor.cursor_at import cursor_at
from gossamer_schedule.cursor.find import find_block, find_loop
from gossamer_schedule.motion.move_block import required_own_loops
from gossamer_schedule.regions.required import required_region

PROGRAM = """
@T.prim_func
def program(x: T.handle, y: T.handle, p: T.handle):
    T.func_attr({{"sparse_tir_level": 0}})
    X = T.match_buffer(x, (16, 16), "float32")
    Y = T.match_buffer(y, (16, 16), "float32")
    P = T.match_buffer(p, (16,), "int32")
    T.assume(in_range(P, 0, 16))
    B = T.alloc_buffer((16, 16), "float32")
    for i in T.serial(16):
        for j in T.serial(16):
            with T.block("make"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = X[vi, vj]
    for u in T.serial(4):
        for v in T.serial(4):
            for w in T.serial(16):
                with T.block("use"):
                    vu, vv, vw = T.axis.remap("SSS", [u, v, w])
                    Y[vu * 4 + vv, vw] = {value}
"""


def required(value, *, loop, changing=frozenset()):
    """The range of each iterator of block `make` for one iteration of a loop: where it begins, and how many
    values it has (None: the whole domain)."""
    module = parse_module(PROGRAM.format(value=value))
    root = cursor_at(module, module.functions[0], primitive="compute_at")
    cursor, target = find_block(root, block="make"), find_loop(root, loop=loop)
    ranges = required_region(cursor, required_own_loops(cursor), target, changing=changing)
    return {
        name: (
            print_expr(item.base),
            None if item.count is None else print_expr(expr_of(item.count)),
        )
        for name, item in ranges.items()
    }


@pytest.mark.parametrize(
    ("value", "loop", "expected"),
    [
        ("B[vu * 4 + vv, vw]", "w", {"vi": ("u * 4 + v", "1"), "vj": ("w", "1")}),
        ("B[vu * 4 + vv, vw]", "v", {"vi": ("u * 4 + v", "1"), "vj": ("0", "16")}),
        ("B[vu * 4 + vv, vw]", "u", {"vi": ("u * 4", "4"), "vj": ("0", "16")}),
        ("B[vu, vw] + B[vu + 1, vw]", "w", {"vi": ("u", "2"), "vj": ("w", "1")}),
        ("B[3, vw]", "w", {"vi": ("3", "1"), "vj": ("w", "1")}),
        ("B[vw, 0]", "u", {"vi": ("0", "16"), "vj": ("0", "1")}),
        ("B[T.int64(P[vw]), vw]", "w", {"vi": ("T.int64(P[w])", "1"), "vj": ("w", "1")}),
        ("B[vu, vv] + B[vv, vu]", "u", {}),
        ("X[vu, vv]", "u", {}),
    ],
)
def test_iterators_have_the_range_that_the_loop_reads(value, loop, expected):
    assert required(value, loop=loop) == expected


def test_no_range_depends_on_a_buffer_that_the_loop_changes():
    ranges = required("B[T.int64(P[vw]), vw]", loop="w", changing=frozenset({"P"}))
    assert ranges == {"vj": ("w", "1")}
