"""The conclusions of analyses from operations of two operands: tables agree, and each conclusion is true."""

from __future__ import annotations

from typing import get_args

import pytest

from gossamer_ir.analysis.bounds.overflow import OverflowAnalysis
from gossamer_ir.analysis.bounds.value_bounds import limit_of
from gossamer_ir.arith.affine import affine_of
from gossamer_ir.arith.evaluate_integer import evaluate_integer
from gossamer_ir.arith.nonaffine_bounds import OPERATION_BOUNDS, bounds_of_binary
from gossamer_ir.core.build import ZERO, index, index_var, mul
from gossamer_ir.core.integers import UNBOUNDED
from gossamer_ir.core.operations import AFFINE_OPERATIONS
from gossamer_ir.nodes import Binary, BinaryOp, For, Function

OPERATIONS = get_args(BinaryOp)
BOUNDED = [op for op in OPERATIONS if op in OPERATION_BOUNDS]
INDEX = index_var("i")
WRAPPED = mul(index_var("unknown"), index(2))
VALUES = range(-9, 10)


def analysis():
    """The analysis of a function in which `i` is below 100."""
    overflow = OverflowAnalysis(Function("f", (), ()))
    overflow.bind_loop(For("i", ZERO, index(100), ()))
    return overflow


@pytest.mark.parametrize("op", OPERATIONS)
def test_an_operation_is_affine_if_its_form_is_not_an_atom(op):
    expr = Binary(op, INDEX, index(3))
    assert (expr not in affine_of(expr).terms) == (op in AFFINE_OPERATIONS)


@pytest.mark.parametrize("op", BOUNDED)
@pytest.mark.parametrize("number", [-4, -1, 0, 1, 2, 7])
def test_what_is_concluded_from_an_operation_holds_for_all_small_operands(op, number):
    expr = Binary(op, INDEX, index(number))
    for form in bounds_of_binary(expr, expr):
        for value in VALUES:
            # The atoms are the operands, the operation, and for a remainder its quotient.
            values = {atom: _value(atom, value) for atom in form.terms}
            total = sum(count * values[atom] for atom, count in form.terms.items())
            assert total + form.constant >= 0, (value, form)


def _value(atom, value):
    if atom == INDEX:
        return value
    assert isinstance(atom, Binary)
    assert atom.lhs == INDEX
    return UNBOUNDED[atom.op](value, evaluate_integer(atom.rhs, {}.__getitem__))


@pytest.mark.parametrize("op", BOUNDED)
def test_an_operation_with_bounds_has_some_for_a_constant(op):
    expr = Binary(op, INDEX, index(4))
    assert [*bounds_of_binary(expr, expr)]


@pytest.mark.parametrize("op", BOUNDED)
def test_operands_that_are_related_must_not_overflow(op):
    expr = Binary(op, WRAPPED, index(4))
    related = {atom for form in bounds_of_binary(expr, expr) for atom in form.terms} - {expr}
    assert bool(related) == OPERATION_BOUNDS[op].relates_operands
    assert analysis().is_sound(expr) != bool(related)
    assert analysis().is_sound(Binary(op, INDEX, index(4)))


@pytest.mark.parametrize("op", sorted({*BOUNDED} | AFFINE_OPERATIONS))
def test_an_operation_that_the_prover_knows_has_a_bound_of_its_absolute_value(op):
    assert analysis().bound(Binary(op, INDEX, index(4))) < limit_of("int64")
