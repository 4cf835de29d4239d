"""Each rule of the simplifier against plain evaluation over small ranges."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gossamer_ir.affine import affine_of, expr_of
from gossamer_ir.build import dtype_of, index, widen
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Buffer, Const, Function, If, Module, Param, Store
from gossamer_ir.script import parse_expr, print_expr
from gossamer_ir.simplify import simplify, simplify_body

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
    """The value of an expression, by the interpreter."""
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
