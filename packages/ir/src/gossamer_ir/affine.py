"""Affine forms of index expressions: a sum of integer multiples of atoms, and a constant.

An atom is any expression that is not itself a sum or a multiple: a variable, a load, a quotient, or
a product of such. Values are those of unbounded integers; machine integers, which wrap, are equal to
them but for multiples of the number of their values. So a `distance` holds of machine integers, too;
whoever compares sees to it that nothing wraps (`magnitudes`).
"""

from __future__ import annotations

from functools import lru_cache, reduce
from typing import Any

import msgspec

from gossamer_ir import build
from gossamer_ir.dtypes import DType
from gossamer_ir.nodes import Binary, Cast, Const, Expr, Load, Unary
from gossamer_ir.walk import free_vars, map_children

MAX_TERMS = 16
"""A product of sums with more terms stays as it is."""


class Affine(msgspec.Struct, frozen=True, gc=False):
    """sum(coefficient * atom) + constant; no coefficient is zero."""

    terms: dict[Expr, int]
    constant: int

    @property
    def is_constant(self) -> bool:
        return not self.terms


@lru_cache(maxsize=4096)
def affine_of(expr: Expr) -> Affine:
    """The affine form of an integer expression.

    >>> from gossamer_ir.build import add, index, index_var, mul
    >>> affine_of(add(mul(index_var("i"), index(4)), index(3))).constant
    3
    """
    if isinstance(expr, Binary):
        if expr.op == "add":
            return combine(affine_of(expr.lhs), affine_of(expr.rhs), 1)
        if expr.op == "sub":
            return combine(affine_of(expr.lhs), affine_of(expr.rhs), -1)
        if expr.op == "mul":
            return product(affine_of(expr.lhs), affine_of(expr.rhs)) or Affine({expr: 1}, 0)
    if isinstance(expr, Unary) and expr.op == "neg":
        return scale(affine_of(expr.operand), -1)
    if isinstance(expr, Cast) and expr.dtype == "int64" and isinstance(expr.value, Const):
        value = build.integer_value(expr.value)
        return Affine({expr: 1}, 0) if value is None else affine_of(build.index(value))
    value = build.integer_value(expr)
    return Affine({expr: 1}, 0) if value is None else Affine({}, value)


@lru_cache(maxsize=4096)
def normal_form(expr: Expr) -> Affine:
    """The affine form of an expression in which indices of loads that are equal look the same.

    >>> from gossamer_ir.build import ONE, add, index_var
    >>> from gossamer_ir.nodes import Load
    >>> i, j = index_var("i"), index_var("j")
    >>> one, other = (Load("P", (add(*terms),), "int64") for terms in ((i, add(j, ONE)), (add(j, i), ONE)))
    >>> normal_form(one) == normal_form(other)
    True
    """

    def normal(node: Any) -> Any:
        inner = map_children(node, normal)
        if not isinstance(inner, Load):
            return inner
        forms = (affine_of(at) for at in inner.indices)
        indices = (
            expr_of(Affine(dict(sorted(form.terms.items(), key=repr)), form.constant))
            for form in forms
        )
        return msgspec.structs.replace(inner, indices=tuple(indices))

    return affine_of(normal(expr))


def product(lhs: Affine, rhs: Affine) -> Affine | None:
    """The form lhs * rhs; None where it has too many terms."""
    if rhs.is_constant:
        return scale(lhs, rhs.constant)
    if lhs.is_constant:
        return scale(rhs, lhs.constant)
    if len(lhs.terms) * len(rhs.terms) > MAX_TERMS:
        return None
    result = combine(scale(lhs, rhs.constant), Affine(rhs.terms, 0), lhs.constant)
    for left, coefficient in lhs.terms.items():
        for right, other in rhs.terms.items():
            result = combine(result, Affine({_multiplied(left, right): 1}, 0), coefficient * other)
    return result


@lru_cache(maxsize=4096)
def _multiplied(lhs: Expr, rhs: Expr) -> Expr:
    factors = sorted((*factors_of(lhs), *factors_of(rhs)), key=repr)
    return reduce(lambda left, right: Binary("mul", left, right), factors)


def factors_of(atom: Expr) -> tuple[Expr, ...]:
    """What an atom is the product of.

    >>> from gossamer_ir.build import index_var, mul
    >>> [factor.name for factor in factors_of(mul(mul(index_var("i"), index_var("m")), index_var("n")))]
    ['i', 'm', 'n']
    """
    if isinstance(atom, Binary) and atom.op == "mul":
        return (*factors_of(atom.lhs), *factors_of(atom.rhs))
    return (atom,)


def shared_factors(atom: Expr, form: Affine) -> list[Expr]:
    """The factors of an atom of a form that another of its products has, too; each stands once in
    every atom."""
    factors = factors_of(atom)
    if len(factors) == 1:
        return []
    products = [factors_of(found) for found in form.terms if found != atom]
    return [
        factor
        for factor in dict.fromkeys(factors)
        if any(factor in found for found in products)
        and all(found.count(factor) < 2 for found in (factors, *products))
    ]


def multiplier_of(factor: Expr, form: Affine) -> Affine:
    """What a factor of some atoms of a form is multiplied by, which they are the products of.

    >>> from gossamer_ir.build import add, index_var, mul
    >>> i, m, n = map(index_var, "imn")
    >>> expr_of(multiplier_of(i, affine_of(add(mul(i, m), mul(n, i))))) == add(m, n)
    True
    """
    result = Affine({}, 0)
    for atom, coefficient in form.terms.items():
        others = list(factors_of(atom))
        if factor in others:
            others.remove(factor)
            rest = Affine({reduce(_multiplied, others): 1}, 0) if others else Affine({}, 1)
            result = combine(result, rest, coefficient)
    return result


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


def distance(lhs: Expr, rhs: Expr) -> int | None:
    """The constant that added to one machine integer gives another, whatever wraps around; None where
    there is none.

    >>> from gossamer_ir.build import ONE, add, index, index_var
    >>> distance(add(index_var("i"), ONE), index_var("i")), distance(index_var("i"), index_var("j"))
    (1, None)
    >>> largest = index(2**63 - 1)
    >>> distance(add(add(add(index_var("i"), largest), largest), index(2)), index_var("i"))
    0
    """
    apart = combine(affine_of(lhs), affine_of(rhs), -1)
    if apart.terms:
        return None
    half = 1 << (DType.parse(build.dtype_of(lhs)).bits - 1)
    return (apart.constant + half) % (2 * half) - half


def along(form: Affine, name: str) -> tuple[Affine, Affine] | None:
    """A form as a multiple of a variable and the rest, neither of which depends on the variable; None
    where it is not one.

    >>> from gossamer_ir.build import add, index_var, mul
    >>> i, m, n = map(index_var, "imn")
    >>> [expr_of(part) for part in along(affine_of(add(mul(i, m), n)), "i")] == [m, n]
    True
    >>> along(affine_of(mul(i, i)), "i")
    """
    variable = build.index_var(name)
    step, rest = Affine({}, 0), Affine({}, form.constant)
    for atom, count in form.terms.items():
        if name not in free_vars(atom):
            rest = combine(rest, Affine({atom: 1}, 0), count)
            continue
        factors = list(factors_of(atom))
        if variable not in factors:
            return None
        factors.remove(variable)
        step = combine(step, affine_of(build.product(factors)), count)
    return None if any(name in free_vars(atom) for atom in step.terms) else (step, rest)


def scale(form: Affine, factor: int) -> Affine:
    """The form factor * form."""
    if factor == 0:
        return Affine({}, 0)
    if factor == 1:
        return form
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
