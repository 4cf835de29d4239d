"""Affine forms of index expressions: a sum of integer multiples of atoms, and a constant.

An atom is any expression that is not itself a sum or a multiple: a variable, a load, a quotient.
"""

from __future__ import annotations

import msgspec

from gossamer_ir import build
from gossamer_ir.nodes import Binary, Cast, Const, Expr, Unary


class Affine(msgspec.Struct, frozen=True):
    """sum(coefficient * atom) + constant; no coefficient is zero."""

    terms: dict[Expr, int]
    constant: int

    @property
    def is_constant(self) -> bool:
        return not self.terms


def affine_of(expr: Expr) -> Affine:
    """The affine form of an integer expression.

    >>> from gossamer_ir.build import add, index, index_var, mul
    >>> affine_of(add(mul(index_var("i"), index(4)), index(3))).constant
    3
    """
    match expr:
        case Const():
            value = build.integer_value(expr)
            return Affine({expr: 1}, 0) if value is None else Affine({}, value)
        case Binary(op="add"):
            return combine(affine_of(expr.lhs), affine_of(expr.rhs), 1)
        case Binary(op="sub"):
            return combine(affine_of(expr.lhs), affine_of(expr.rhs), -1)
        case Binary(op="mul"):
            return _product(expr, affine_of(expr.lhs), affine_of(expr.rhs))
        case Unary(op="neg"):
            return scale(affine_of(expr.operand), -1)
        case Cast(dtype="int64", value=Const() as inner):
            return affine_of(inner)
        case _:
            return Affine({expr: 1}, 0)


def _product(expr: Expr, lhs: Affine, rhs: Affine) -> Affine:
    if rhs.is_constant:
        return scale(lhs, rhs.constant)
    if lhs.is_constant:
        return scale(rhs, lhs.constant)
    if len(lhs.terms) == len(rhs.terms) == 1 and lhs.constant == rhs.constant == 0:
        ((left, factor),) = lhs.terms.items()
        ((right, other),) = rhs.terms.items()
        return Affine({Binary("mul", left, right): factor * other}, 0)
    return Affine({expr: 1}, 0)


def combine(lhs: Affine, rhs: Affine, factor: int) -> Affine:
    """The form lhs + factor * rhs."""
    terms = dict(lhs.terms)
    for atom, coefficient in rhs.terms.items():
        total = terms.get(atom, 0) + factor * coefficient
        if total:
            terms[atom] = total
        else:
            terms.pop(atom, None)
    return Affine(terms, lhs.constant + factor * rhs.constant)


def scale(form: Affine, factor: int) -> Affine:
    """The form factor * form."""
    if factor == 0:
        return Affine({}, 0)
    return Affine({atom: c * factor for atom, c in form.terms.items()}, form.constant * factor)


def expr_of(form: Affine) -> Expr:
    """An expression of the form, positive terms first."""
    result: Expr | None = None
    for atom, coefficient in sorted(form.terms.items(), key=lambda item: item[1] < 0):
        size = build.mul(atom, build.index(abs(coefficient)))
        if result is None:
            result = size if coefficient > 0 else build.sub(build.ZERO, size)
        else:
            result = build.add(result, size) if coefficient > 0 else build.sub(result, size)
    if result is None:
        return build.index(form.constant)
    if form.constant < 0:
        return build.sub(result, build.index(-form.constant))
    return build.add(result, build.index(form.constant))
