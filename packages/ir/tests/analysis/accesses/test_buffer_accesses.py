"""Accesses have the loops and conditions around them, in terms of loop variables."""

from __future__ import annotations

import pytest

from gossamer_ir.analysis.accesses.buffer_accesses import accesses
from gossamer_ir.script import parse_module, print_expr

PROGRAM = """
@T.prim_func
def main(x: T.handle, y: T.handle, p: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    P = T.match_buffer(p, (n,), "int32")
"""


def access_texts(*lines, **options):
    """The accesses of a body as texts: the buffer, its indices, loops, conditions, whether it is certain."""
    module = parse_module(PROGRAM + "".join(f"    {line}\n" for line in lines))
    return [
        (
            f"{each.buffer}{' =' if each.is_store else ''}",
            [print_expr(index) for index in each.indices],
            [loop.var for loop in each.context.loops],
            [print_expr(condition) for condition in each.context.conditions],
            each.is_certain,
        )
        for each in accesses(module.functions[0].body, **options)
    ]


def test_loads_come_before_the_store_of_a_statement():
    assert access_texts("for i in T.serial(n):", "    Y[i] = X[i] + X[0]") == [
        ("X", ["i"], ["i"], [], True),
        ("X", ["0"], ["i"], [], True),
        ("Y =", ["i"], ["i"], [], True),
    ]


def test_lets_and_block_variables_are_resolved():
    lines = (
        "for i in T.serial(n):",
        "    at = i + 1",
        '    with T.block("b"):',
        "        v = T.axis.spatial(n, at)",
        "        Y[v] = 1.0",
    )
    assert access_texts(*lines, buffers={"Y"})[0][1] == ["i + 1"]


def test_conditions_hold_in_the_branch_that_they_choose():
    lines = (
        "for i in T.serial(n):",
        "    if i < 3:",
        "        Y[i] = 1.0",
        "    else:",
        "        X[i] = 1.0",
    )
    (stored, conditions), (other, opposite) = ((each[0], each[3]) for each in access_texts(*lines))
    assert (stored, conditions) == ("Y =", ["i < 3"])
    assert (other, opposite) == ("X =", ["not i < 3"])
    assert [each[3] for each in access_texts(*lines, conditions=False)] == [[], []]


@pytest.mark.parametrize(
    ("value", "certain"), [("X[i]", [True]), ("T.if_then_else(i < 3, X[i], T.float32(0))", [False])]
)
def test_a_load_that_a_choice_may_leave_out_is_not_certain(value, certain):
    lines = ("for i in T.serial(n):", f"    Y[i] = {value}")
    assert [each[4] for each in access_texts(*lines, buffers={"X"})] == certain
