"""An element determines variables of the iteration if no two of their values give the same indices."""

from __future__ import annotations

from itertools import product

import pytest

from gossamer_ir.analysis.axes.determined_variables import DeterminedVars
from gossamer_ir.core.build import add, binary, floordiv, index, index_var, mul
from gossamer_ir.nodes import Binary

ROW, COLUMN = index_var("i"), index_var("j")
FOUR = index(4)

DETERMINED = {
    "the variables themselves": (ROW, COLUMN),
    "a sum and one of its terms": (add(ROW, COLUMN), COLUMN),
    "quotient and remainder": (floordiv(ROW, FOUR), Binary("floormod", ROW, FOUR), COLUMN),
    "an offset": (add(mul(ROW, index(3)), index(1)), add(COLUMN, ROW)),
}
NOT_DETERMINED = {
    "a sum": ((add(ROW, COLUMN),), {"i", "j"}),
    "a quotient": ((floordiv(ROW, FOUR), COLUMN), {"i"}),
    "a remainder": ((Binary("floormod", ROW, FOUR), COLUMN), {"i"}),
    "quotient and remainder by different numbers": (
        (floordiv(ROW, FOUR), Binary("floormod", ROW, index(3)), COLUMN), {"i"},
    ),
}  # fmt: skip


def missing(indices, lets=None):
    determined = DeterminedVars(indices, {"i", "j"}, lets or {})
    return {*determined.missing(ROW), *determined.missing(COLUMN)}


def distinct(indices):
    """Whether the indices differ for all pairs of small values."""
    tuples = [
        tuple(_value(each, i, j) for each in indices) for i, j in product(range(12), repeat=2)
    ]
    return len({*tuples}) == len(tuples)


def _value(expr, i, j):
    match expr:
        case Binary(op, lhs, rhs):
            left, right = _value(lhs, i, j), _value(rhs, i, j)
            return {
                "add": left + right,
                "mul": left * right,
                "floordiv": left // (right or 1),
                "floormod": left % (right or 1),
            }[op]
        case _ if expr in (ROW, COLUMN):
            return i if expr == ROW else j
    return int(expr.text)


@pytest.mark.parametrize("indices", DETERMINED.values(), ids=DETERMINED)
def test_nothing_is_missing_where_the_indices_are_distinct(indices):
    assert missing(indices) == set()
    assert distinct(indices)


@pytest.mark.parametrize(("indices", "names"), NOT_DETERMINED.values(), ids=NOT_DETERMINED)
def test_a_variable_that_indices_share_is_missing(indices, names):
    assert missing(indices) == names
    assert not distinct(indices)


def test_a_let_is_determined_by_its_value_and_its_value_by_the_let():
    k = index_var("k")
    assert missing((k, COLUMN), {"k": add(ROW, COLUMN)}) == set()
    determined = DeterminedVars((ROW, COLUMN), {"i", "j"}, {"k": binary("mul", ROW, COLUMN)})
    assert [*determined.missing(k)] == []
