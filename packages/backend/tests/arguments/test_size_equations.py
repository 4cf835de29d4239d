"""Evaluation and solution of the size expressions of array shapes."""

import numpy as np
import pytest

from gossamer_backend.arguments.size_equations import LinearSize, evaluate_size, to_linear
from gossamer_ir.core.build import index, index_var
from gossamer_ir.errors import ArgumentError, UnsupportedError
from gossamer_ir.nodes import Binary, Cast, Const, IfThenElse, Load, Var

M, N = index_var("m"), index_var("n")
ROWS = Load("X", (M,), "int32")
TRUE = Var("flag", "bool")


def of(operation, lhs, rhs):
    return Binary(operation, lhs, rhs)


EXPRS = {
    "a constant": (index(-3), -3, LinearSize(None, 0, -3)),
    "a variable": (M, 2, LinearSize("m", 1, 0)),
    "a widened variable": (Cast("int64", Var("m", "int32")), 2, LinearSize("m", 1, 0)),
    "a widened sum": (
        Cast("int64", of("add", Var("m", "int32"), Const("int32", "1"))),
        3,
        LinearSize("m", 1, 1),
    ),
    "a sum": (of("add", M, index(1)), 3, LinearSize("m", 1, 1)),
    "a sum the other way round": (of("add", index(1), M), 3, LinearSize("m", 1, 1)),
    "a difference": (of("sub", M, index(1)), 1, LinearSize("m", 1, -1)),
    "a difference from": (of("sub", index(9), M), 7, LinearSize("m", -1, 9)),
    "a product": (of("mul", of("add", M, index(1)), index(4)), 12, LinearSize("m", 4, 4)),
    "a product with zero": (of("mul", M, index(0)), 0, LinearSize(None, 0, 0)),
    "a variable twice": (of("add", M, of("mul", M, index(2))), 6, LinearSize("m", 3, 0)),
    "a variable that cancels out": (of("sub", of("add", M, N), N), 2, LinearSize("m", 1, 0)),
    "two variables": (of("add", M, N), -5, None),
    "a product of variables": (of("mul", M, N), -14, None),
    "a floor": (of("floordiv", N, M), -4, None),
    "a remainder": (of("floormod", N, M), 1, None),
    "the less": (of("min", N, M), -7, None),
    "the greater": (of("max", N, M), 2, None),
    "an element": (Cast("int64", ROWS), 30, None),
}


@pytest.mark.parametrize(("expr", "value", "linear"), EXPRS.values(), ids=EXPRS.keys())
def test_expressions_have_their_value(expr, value, linear):
    scalars = {"m": 2, "n": -7}
    assert evaluate_size(expr, scalars, arrays={"X": np.array([10, 20, 30])}) == value
    assert to_linear(expr) == linear
    if linear is not None:
        assert linear.value(scalars) == value
        assert linear.solve(value) == (2 if linear.factor else None)


def test_no_integer_solves_what_does_not_divide():
    assert LinearSize("m", 4, 1).solve(13) == 3
    assert LinearSize("m", 4, 1).solve(12) is None


@pytest.mark.parametrize("operation", ["floordiv", "floormod"])
def test_division_by_zero_is_refused(operation):
    with pytest.raises(ArgumentError, match="divided by zero"):
        evaluate_size(of(operation, M, N), {"m": 1, "n": 0}, arrays={})


def test_other_expressions_are_refused_by_name():
    with pytest.raises(UnsupportedError, match="IfThenElse") as caught:
        evaluate_size(IfThenElse(TRUE, M, N), {"m": 1, "n": 0, "flag": True}, arrays={})
    assert caught.value.code == "backend.size"
