"""Loop nests that match the pattern of an intrinsic, and what its loops, scalars and buffers are bound to."""

from __future__ import annotations

import pytest

from gossamer_ir.nodes import For
from gossamer_ir.script import parse_module, print_expr
from gossamer_schedule.tensorization.unify import matches_of

PATTERN = """
@T.prim_func
def product(a: T.handle, b: T.handle, c: T.handle, s: T.float32):
    T.func_attr({"sparse_tir_level": 0})
    A = T.match_buffer(a, (4, 8), "float32")
    B = T.match_buffer(b, (8,), "float32")
    C = T.match_buffer(c, (4,), "float32")
    for i in T.serial(4):
        for k in T.serial(8):
            C[i] = C[i] + A[i, k] * B[k] * s
"""
PROGRAM = """
@T.prim_func
def program(x: T.handle, y: T.handle, z: T.handle, n: T.int64, w: T.float32):
    T.func_attr({{"sparse_tir_level": 0}})
    X = T.match_buffer(x, (64, 64), "float32")
    Y = T.match_buffer(y, (64,), "float32")
    Z = T.match_buffer(z, (64,), "float32")
    for {outer} in T.serial({extents[0]}):
        for {inner} in T.serial({extents[1]}):
            {stmt}
"""


def nest_of(text):
    loops, node = [], parse_module(text).functions[0].body[0]
    while isinstance(node, For):
        loops.append(node)
        (node,) = node.body
    return node, loops


def matches(stmt, *, order="pq", extents=(4, 8)):
    text = PROGRAM.format(outer=order[0], inner=order[1], extents=extents, stmt=stmt)
    return list(matches_of(*nest_of(PATTERN), *nest_of(text)))


@pytest.mark.parametrize(
    ("stmt", "options", "indices"),
    [
        ("Z[p] = Z[p] + X[p, q] * Y[q] * w", {}, ["p, q", "q", "p"]),
        # Operands of products and sums may be in any order.
        ("Z[p] = w * (Y[q] * X[p, q]) + Z[p]", {}, ["p, q", "q", "p"]),
        # Loops may be in any order, and rows in that of columns.
        ("Z[p] = Z[p] + X[q, p] * Y[q] * w", {}, ["q, p", "q", "p"]),
        (
            "Z[p] = Z[p] + X[p, q] * Y[q] * w",
            {"order": "qp", "extents": (8, 4)},
            ["p, q", "q", "p"],
        ),
        # Elements may be anywhere in their buffers.
        ("Z[p + n] = Z[p + n] + X[2 * p, q] * Y[7 - q] * w", {}, ["2 * p, q", "7 - q", "p + n"]),
        # A scalar may be any expression that the loops do not change.
        ("Z[p] = Z[p] + X[p, q] * Y[q] * (w * w)", {}, ["p, q", "q", "p"]),
    ],
)
def test_nests_match_up_to_names_and_orders(stmt, options, indices):
    (match,) = matches(stmt, **options)
    bound = [match.bindings[name] for name in "ABC"]
    assert [", ".join(map(print_expr, item.indices)) for item in bound] == indices
    assert match.loops == {"i": "p", "k": "q"}
    assert set(match.scalars) == {"s"}


@pytest.mark.parametrize(
    ("stmt", "options"),
    [
        ("Z[p] = Z[p] - X[p, q] * Y[q] * w", {}),
        ("Z[p] = X[p, q] * Y[q] * w", {}),
        ("Z[p] = Z[p] + X[p, q] * Y[q]", {}),
        ("Z[p] = Z[p] + X[p, q] * Y[q] * w", {"extents": (4, 9)}),
        # The bounds of a loop depend on the other one.
        ("Z[p] = Z[p] + X[p, q] * Y[q] * w", {"extents": (4, "p + 1")}),
        # One buffer of the pattern at two places.
        ("Z[p] = Z[p + 1] + X[p, q] * Y[q] * w", {}),
        # The element depends on a loop in which the pattern has no dimension.
        ("Z[p] = Z[p] + X[p, q] * Y[p + q] * w", {}),
        # The scalar has another value in each iteration.
        ("Z[p] = Z[p] + X[p, q] * Y[q] * T.float32(p)", {}),
    ],
)
def test_other_nests_do_not_match(stmt, options):
    assert matches(stmt, **options) == []
