"""Each rule of the simplifier, exhaustively over small operands, against plain Python and NumPy.

Expressions apply every operation to variables and constants with all values of `VALUES`; the simplified
expression must have the same value in each case.
"""

from __future__ import annotations

import itertools
import math
import operator

import numpy as np
import pytest

from gossamer_ir.arith.simplify import _RULES, simplify, simplify_body
from gossamer_ir.core.build import index
from gossamer_ir.core.conditions import FALSE, TRUE
from gossamer_ir.core.constants import constant, value_of
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Const,
    For,
    If,
    IfThenElse,
    Lanes,
    Load,
    Ramp,
    Select,
    Store,
    Unary,
    Var,
)

pytestmark = pytest.mark.no_error_examples

VALUES = range(-6, 7)
V, J = Var("i", "int64"), Var("j", "int64")
A, B = Var("a", "bool"), Var("b", "bool")
OPERANDS = (V, J, *map(index, VALUES))
FLOATS = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.5, 2.0)
X, Y = Var("x", "float32"), Var("y", "float32")

INTEGER = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv,
    "floormod": operator.mod, "min": min, "max": max, "bitand": operator.and_,
    "bitor": operator.or_, "bitxor": operator.xor,
}  # fmt: skip
FLOAT = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "min": np.minimum, "max": np.maximum,
}  # fmt: skip
LOGIC = {"and": lambda a, b: a and b, "or": lambda a, b: a or b}
COMPARED = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


def value(expr, case):
    """The value of an expression; raises an exception if it has none."""
    match expr:
        case Var():
            return case[expr.name]
        case Const():
            constant_value = value_of(expr)
            return np.float32(constant_value) if expr.dtype == "float32" else constant_value
        case Unary(op="not"):
            return not value(expr.operand, case)
        case Unary(op="neg"):
            return -value(expr.operand, case)
        case Binary():
            table = LOGIC if expr.op in LOGIC else FLOAT if "float" in dtype_of(expr) else INTEGER
            return table[expr.op](value(expr.lhs, case), value(expr.rhs, case))
        case Compare():
            return COMPARED[expr.op](value(expr.lhs, case), value(expr.rhs, case))
        case Select():
            chosen = value(expr.condition, case)
            return np.where(chosen, value(expr.if_true, case), value(expr.if_false, case)).tolist()
        case IfThenElse():
            return value(expr.if_true if value(expr.condition, case) else expr.if_false, case)
        case Cast(dtype="int64"):
            return int(value(expr.value, case))
        case Cast(dtype="float32"):
            return np.float32(value(expr.value, case))
        case Broadcast():
            return np.full(expr.lanes.count, value(expr.value, case))
        case Ramp():
            start, step = value(expr.base, case), value(expr.stride, case)
            return start + step * np.arange(expr.lanes.count)
    raise TypeError(expr)


def is_same(one, other):
    """True for equal bits, of scalars and lanes; all NaNs are equal."""
    left, right = np.asarray(one), np.asarray(other)
    if left.dtype.kind == "f":
        same = (left == right) & (np.signbit(left) == np.signbit(right))
        return bool(np.all(same | (np.isnan(left) & np.isnan(right))))
    return bool(np.all(left == right))


def cases_of(names):
    domains = {"int64": VALUES, "bool": (False, True), "float32": [np.float32(x) for x in FLOATS]}
    for values in itertools.product(*(domains[name.dtype] for name in names)):
        yield {name.name: bound for name, bound in zip(names, values, strict=True)}


def check(expr, *names):
    """The simplified expression has the value of the expression wherever that is defined."""
    simple = simplify(expr)
    if simple == expr:
        return 0
    assert dtype_of(simple) == dtype_of(expr)
    for case in cases_of(names):
        try:
            expected = value(expr, case)
        except ZeroDivisionError:
            continue
        assert is_same(value(simple, case), expected), (expr, simple, case)
    return 1


@pytest.mark.parametrize("op", INTEGER)
def test_an_operation_of_integers(op):
    for lhs, rhs in itertools.product(OPERANDS, repeat=2):
        check(Binary(op, lhs, rhs), V, J)


@pytest.mark.parametrize("outer", ["add", "sub", "mul", "floordiv", "floormod", "min", "max"])
@pytest.mark.parametrize("inner", ["add", "sub", "mul", "floordiv", "floormod", "min"])
def test_an_operation_of_an_operation(outer, inner):
    for first, second in itertools.product(map(index, VALUES), repeat=2):
        check(Binary(outer, Binary(inner, V, first), second), V)
        check(Binary(outer, first, Binary(inner, V, second)), V)
        check(Binary(outer, first, Binary(inner, second, V)), V)


def test_an_addition_to_a_sum_is_one_constant():
    simplified = simplify(Binary("add", index(2), Binary("add", V, index(3))))
    assert simplified == Binary("add", V, index(5))


@pytest.mark.parametrize("op", COMPARED)
def test_a_comparison_of_integers(op):
    for lhs, rhs in itertools.product(OPERANDS, repeat=2):
        check(Compare(op, lhs, rhs), V, J)


@pytest.mark.parametrize("op", COMPARED)
def test_a_comparison_of_lanes(op):
    lanes = Lanes(3)
    ramps = [Ramp(index(b), index(s), lanes) for b, s in itertools.product(range(-2, 3), repeat=2)]
    others = [Broadcast(scalar, lanes) for scalar in (V, *map(index, range(-4, 5)))]
    for lhs, rhs in itertools.product((*ramps, *others), repeat=2):
        check(Compare(op, lhs, rhs), V)


def test_a_ramp_that_wraps_is_not_compared():
    for stride in (1, -1):
        base = 2**63 - 2 if stride > 0 else -(2**63) + 1
        ramp = Ramp(index(base), index(stride), Lanes(4))
        for op in COMPARED:
            condition = Compare(op, ramp, Broadcast(index(0), Lanes(4)))
            assert simplify(condition) == condition


@pytest.mark.parametrize("op", LOGIC)
def test_logic(op):
    inner = (TRUE, FALSE, A, B, Unary("not", A), Unary("not", TRUE), Binary("and", A, B))
    inner += (Binary("or", A, B), Binary("and", A, TRUE), Binary("or", FALSE, B))
    for lhs, rhs in itertools.product(inner, repeat=2):
        check(Binary(op, lhs, rhs), A, B)
        check(Unary("not", Binary(op, lhs, rhs)), A, B)


@pytest.mark.parametrize("op", LOGIC)
def test_logic_of_lanes(op):
    lanes = Lanes(2)
    parts = [Broadcast(part, lanes) for part in (TRUE, FALSE, A)]
    arrays = {"and": np.logical_and, "or": np.logical_or}
    for lhs, rhs in itertools.product(parts, repeat=2):
        simple = simplify(Binary(op, lhs, rhs))
        for case in cases_of((A,)):
            expected = arrays[op](value(lhs, case), value(rhs, case))
            rest = simple if not isinstance(simple, Binary) else None
            if rest is not None:
                assert is_same(value(rest, case), expected)


@pytest.mark.parametrize("kind", [Select, IfThenElse])
def test_a_choice(kind):
    conditions = (TRUE, FALSE, A, Compare("lt", index(1), index(2)), Compare("lt", V, index(2)))
    for condition, yes, no in itertools.product(conditions, OPERANDS[:4], OPERANDS[:4]):
        check(kind(condition, yes, no), A, V, J)
    for condition, yes, no in itertools.product(conditions[:3], (X, Y), (X, Y)):
        check(kind(condition, yes, no), A, X, Y)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"])
def test_a_conversion_of_an_integer(dtype):
    for number in VALUES:
        if number >= 0 or not dtype.startswith("u"):
            assert check(Cast("int64", constant(number, dtype))) == 1
    var = Var("i", dtype)
    assert simplify(Cast(dtype, var)) == var
    assert simplify(Cast("float32", var)) == Cast("float32", var)


@pytest.mark.parametrize("dtype", ["bool", "float32", "float64"])
def test_a_conversion_of_what_is_no_integer_stays(dtype):
    for number in (0, 1) if dtype == "bool" else FLOATS:
        before = Cast("int64", constant(number, dtype))
        assert simplify(before) == before
    assert simplify(Cast(dtype, Var("x", dtype))) == Var("x", dtype)


@pytest.mark.parametrize("op", FLOAT)
def test_nothing_is_done_to_floats(op):
    operands = (X, Y, *(constant(number, "float32") for number in FLOATS))
    for lhs, rhs in itertools.product(operands, repeat=2):
        assert check(Binary(op, lhs, rhs), X, Y) == 0
        assert check(Unary("neg", Binary(op, lhs, rhs)), X, Y) == 0


@pytest.mark.parametrize("op", COMPARED)
def test_comparisons_of_floats_stay(op):
    operands = (X, *(constant(number, "float32") for number in FLOATS))
    for lhs, rhs in itertools.product(operands, repeat=2):
        assert check(Compare(op, lhs, rhs), X) == 0


@pytest.mark.parametrize("dtype", ["int32", "uint8"])
@pytest.mark.parametrize("op", [*INTEGER, *COMPARED])
def test_narrow_integers_are_compared_and_nothing_else(op, dtype):
    kind = Compare if op in COMPARED else Binary
    numbers = [number for number in VALUES if number >= 0 or dtype == "int32"]
    for lhs, rhs in itertools.product(numbers, repeat=2):
        before = kind(op, constant(lhs, dtype), constant(rhs, dtype))
        assert check(before) == (kind is Compare)


ZERO = index(0)
VALUE = Const("float32", "nan")
LANES = Lanes(4)


@pytest.mark.parametrize("lanes", [False, True])
def test_a_masked_access(lanes):
    for condition in (TRUE, FALSE, A):
        mask = Broadcast(condition, LANES) if lanes else condition
        load = Load("X", (V,), "float32", mask, VALUE)
        made = {TRUE: Load("X", (V,), "float32"), FALSE: VALUE}
        assert simplify(load) == made.get(condition, load)
        store = Store("X", (V,), VALUE, mask)
        stored = {TRUE: (Store("X", (V,), VALUE),), FALSE: ()}
        assert simplify_body((store,)) == stored.get(condition, (store,))


def test_a_condition():
    one, other = Store("X", (V,), ZERO), Store("X", (J,), ZERO)
    for condition in (TRUE, FALSE, A):
        for yes, no in itertools.product(((), (one,), (one, other)), repeat=2):
            left = {TRUE: yes, FALSE: no}.get(condition)
            if left is None:
                left = (If(condition, yes, no),) if yes or no else ()
            assert simplify_body((If(condition, yes, no),)) == left


def test_a_loop():
    store = Store("X", (V,), ZERO)
    for extent in (*map(index, VALUES), J):
        for body in ((), (store,)):
            loop = For("i", ZERO, extent, body)
            runs = body and (extent is J or value_of(extent) > 0)
            assert simplify_body((loop,)) == ((loop,) if runs else ())


def test_every_rule_is_looked_at():
    checked = {Binary, Compare, Cast, Select, IfThenElse, Unary, Load, Store, If, For}
    assert _RULES.keys() == checked
