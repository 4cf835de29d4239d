"""Each rule of the simplifier against plain evaluation over small ranges."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gossamer_ir.arith.affine import affine_of, expr_of
from gossamer_ir.arith.simplify import simplify, simplify_body, simplify_unguarded
from gossamer_ir.core.build import ONE, ZERO, index, widen
from gossamer_ir.core.conditions import FALSE, TRUE
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.interpret import run
from gossamer_ir.nodes import (
    Binary,
    Buffer,
    Cast,
    Compare,
    Const,
    For,
    Function,
    If,
    IfThenElse,
    Load,
    Module,
    Param,
    Select,
    Store,
    Unary,
    Var,
)
from gossamer_ir.script import parse_expr, print_expr

DTYPES = {"i": "int64", "j": "int64"}
TEXTS = [
    "i + 0", "0 + i", "i - i", "i - 0", "i * 1", "1 * i", "i * 0", "0 * i", "i + 2 + 3", "2 + i",
    "i // 1", "7 // 2", "(0 - 7) // 2", "7 % 3", "(0 - 7) % 3", "T.min(3, 5)", "T.max(3, 5)",
    "i + j * 2 - i", "(i + 1) * 4 - j", "T.Select(3 < 4, i, j)", "T.if_then_else(4 < 3, i, j)",
    "T.int64(i)", "(i + j) * (2 + 1)", "0 - (i - j)",
]  # fmt: skip
CONDITIONS = [
    "3 < 4",
    "4 <= 3",
    "i < j and 1 < 2",
    "i < j or 1 < 2",
    "not (1 < 2)",
    "2 == 2",
    "2 != 2",
]


def evaluated(expr, i, j):
    """The value of an expression, computed by the interpreter."""
    if dtype_of(expr) == "bool":
        expr = parse_expr(f"T.Select({print_expr(expr)}, 1, 0)", DTYPES)
    out = Buffer("out", (index(1),), "int64", "o")
    params = (Param("o", "handle"), Param("i", "int64"), Param("j", "int64"))
    function = Function("f", params, (Store("out", (index(0),), widen(expr)),), buffers=(out,))
    result = np.zeros(1, np.int64)
    run(Module("flat", (function,), "f"), {"o": result, "i": i, "j": j})
    return int(result[0])


@pytest.mark.parametrize("text", [*TEXTS, *CONDITIONS])
def test_a_simplified_expression_has_the_same_value(text):
    expr = parse_expr(text, DTYPES)
    for i, j in itertools.product(range(-3, 4), repeat=2):
        assert evaluated(simplify(expr), i, j) == evaluated(expr, i, j)


LIMITS = (-(2**63), -7, -1, 0, 1, 2, 7, 2**63 - 1)
FOLDED = ("add", "sub", "mul", "floordiv", "floormod", "min", "max")
COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")


@pytest.mark.parametrize("op", FOLDED)
def test_constants_fold_as_they_are_computed_and_wrap(op):
    for left, right in itertools.product(LIMITS, repeat=2):
        if right or op not in ("floordiv", "floormod"):
            folded = simplify(Binary(op, index(left), index(right)))
            assert folded == index(evaluated(Binary(op, Var("i", "int64"), index(right)), left, 0))


@pytest.mark.parametrize("op", COMPARED)
def test_comparisons_of_constants_are_decided(op):
    for left, right in itertools.product(LIMITS, repeat=2):
        expected = evaluated(Compare(op, Var("i", "int64"), index(right)), left, 0)
        assert simplify(Compare(op, index(left), index(right))) == Const("bool", str(expected == 1))


def test_a_conversion_to_int64_wraps():
    assert simplify(Cast("int64", Const("uint64", str(2**64 - 1)))) == index(-1)
    assert simplify(Cast("int64", Const("int32", "-5"))) == index(-5)


I_LESS = Compare("lt", Var("i", "int64"), Var("j", "int64"))
LOGIC = {
    "and with true": (Binary("and", TRUE, I_LESS), I_LESS),
    "and with false": (Binary("and", I_LESS, FALSE), FALSE),
    "the same twice": (Binary("and", I_LESS, I_LESS), I_LESS),
    "or with true": (Binary("or", I_LESS, TRUE), TRUE),
    "or with false": (Binary("or", FALSE, I_LESS), I_LESS),
    "not": (Unary("not", TRUE), FALSE),
    "a choice that is made": (Select(TRUE, index(1), index(2)), index(1)),
    "a choice that is not": (IfThenElse(FALSE, index(1), index(2)), index(2)),
    "a load that is made": (
        Load("X", (ZERO,), "float32", TRUE, Const("float32", "1.0")),
        Load("X", (ZERO,), "float32"),
    ),
    "a load that is not": (
        Load("X", (ZERO,), "float32", FALSE, Const("float32", "1.0")),
        Const("float32", "1.0"),
    ),
    "a load that may be": (
        Load("X", (ZERO,), "float32", I_LESS, Const("float32", "1.0")),
        Load("X", (ZERO,), "float32", I_LESS, Const("float32", "1.0")),
    ),
    "a store that is made": (Store("X", (ZERO,), ONE, TRUE), Store("X", (ZERO,), ONE)),
}


@pytest.mark.parametrize(("before", "after"), LOGIC.values(), ids=LOGIC)
def test_decided_conditions_are_simplified(before, after):
    assert simplify(before) == after


def test_loops_and_conditions_that_do_nothing_disappear():
    store = Store("X", (ZERO,), ONE)
    assert simplify_body((For("i", ZERO, index(-1), (store,)), store)) == (store,)
    assert simplify_body((If(TRUE, (store, store), ()),)) == (store, store)
    assert simplify_body((If(FALSE, (store,), ()), Store("X", (ZERO,), ONE, FALSE))) == ()


@pytest.mark.parametrize("text", TEXTS)
def test_an_affine_form_has_the_same_value(text):
    expr = parse_expr(text, DTYPES)
    for i, j in itertools.product(range(-3, 4), repeat=2):
        assert evaluated(expr_of(affine_of(expr)), i, j) == evaluated(expr, i, j)


def test_constants_fold():
    assert [print_expr(simplify(parse_expr(text, DTYPES))) for text in ("i + 2 + 3", "7 % 3")] == [
        "i + 5",
        print_expr(index(1)),
    ]


def test_masks_of_constant_ramps_are_decided():
    dtypes = DTYPES
    whole = simplify(
        parse_expr("T.ramp(T.int64(16), 1, 16) < T.broadcast(T.int64(32), 16)", dtypes)
    )
    part = simplify(parse_expr("T.ramp(T.int64(16), 1, 16) < T.broadcast(T.int64(20), 16)", dtypes))
    none = simplify(parse_expr("T.ramp(T.int64(16), 1, 16) < T.broadcast(T.int64(16), 16)", dtypes))
    assert whole.value == Const("bool", "True")
    assert none.value == Const("bool", "False")
    assert dtype_of(part) == "boolx16"


def test_a_statement_that_does_nothing_disappears():
    store = Store("x", (index(0),), index(1))
    assert simplify_body(
        (If(parse_expr("1 < 2", {}), (store,)), If(parse_expr("2 < 1", {}), (store,)))
    ) == (store,)


def test_the_weight_of_an_empty_loop_is_read():
    """Its loads need bounds checks."""
    weight = widen(Load("P", (Var("i", "int64"),), "int32"))
    loop = For("i", ZERO, index(4), (), "parallel", weight=weight)
    assert simplify_unguarded((loop,)) == (loop,)
    assert simplify_unguarded((For("i", ZERO, index(4), ()),)) == ()
