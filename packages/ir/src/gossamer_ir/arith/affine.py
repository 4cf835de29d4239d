"""Affine forms of index expressions: a sum of integer multiples of atoms, and a constant.

An atom is any expression that is not itself a sum or a multiple: a variable, a load, a quotient, or
a product of these. A form denotes a value in unbounded integers; machine integers wrap, and so agree with
it modulo 2**bits. Differences (`distance`) are therefore valid for machine integers too. Comparisons are
valid only if the caller makes sure that nothing wraps (`analysis.bounds.overflow`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache, reduce
from math import gcd
from operator import and_

import msgspec
from msgspec.structs import replace

from gossamer_ir.core.build import ZERO, add, index, integer_value, mul, product, sub
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.integers import wrap_integer
from gossamer_ir.nodes import Binary, Cast, Const, Expr, Load, Node, Unary, VScale
from gossamer_ir.traversal.rewrite import map_children

MAX_TERMS = 16
"""A product of two sums that would have more terms is not expanded, since terms multiply with each
factor."""
# `_RADIX` is a power of two, so that parts of a large number are products that int64 can represent.
_INT64_MIN, _RADIX = -(2**63), 2**62


class Affine(msgspec.Struct, frozen=True, gc=False):
    """sum(coefficient * atom) + constant; no coefficient is zero."""

    terms: dict[Expr, int]
    constant: int

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def __add__(self, other: Affine) -> Affine:
        return combine(self, other, 1)

    def __sub__(self, other: Affine) -> Affine:
        return combine(self, other, -1)

    def __hash__(self) -> int:
        return hash((frozenset(self.terms.items()), self.constant))


ZERO_FORM = Affine({}, 0)
ONE_FORM = Affine({}, 1)


@lru_cache(maxsize=4096)
def affine_of(expr: Expr) -> Affine:
    """Return the affine form of an integer expression.

    >>> from gossamer_ir.core.build import add, index, index_var, mul
    >>> affine_of(add(mul(index_var("i"), index(4)), index(3))).constant
    3
    """
    if isinstance(expr, Binary):
        if expr.op == "add":
            return affine_of(expr.lhs) + affine_of(expr.rhs)
        if expr.op == "sub":
            return affine_of(expr.lhs) - affine_of(expr.rhs)
        if expr.op == "mul":
            return multiply(affine_of(expr.lhs), affine_of(expr.rhs)) or Affine({expr: 1}, 0)
    if isinstance(expr, Unary) and expr.op == "neg":
        return scale(affine_of(expr.operand), -1)
    # Only of constants: the cast of a narrow sum is not the sum of the casts if the sum wraps.
    if isinstance(expr, Cast) and expr.dtype == "int64" and isinstance(expr.value, Const):
        value = integer_value(expr.value)
        return Affine({expr: 1}, 0) if value is None else affine_of(index(value))
    value = integer_value(expr)
    return Affine({expr: 1}, 0) if value is None else Affine({}, value)


@lru_cache(maxsize=4096)
def normal_form(expr: Expr) -> Affine:
    """Return the affine form of an expression, with the indices of loads in a canonical order of terms, so
    that loads with equal indices become one atom.

    >>> from gossamer_ir.core.build import ONE, add, index_var
    >>> from gossamer_ir.nodes import Load
    >>> i, j = index_var("i"), index_var("j")
    >>> one, other = (Load("P", (add(*terms),), "int64") for terms in ((i, add(j, ONE)), (add(j, i), ONE)))
    >>> normal_form(one) == normal_form(other)
    True
    """

    def normal(node: Node) -> Node:
        inner = map_children(node, normal)
        if not isinstance(inner, Load):
            return inner
        # The order of the terms of a sum is that in which it was written,
        # and atoms are compared by structure.
        forms = (affine_of(at) for at in inner.indices)
        indices = (
            expr_of(Affine(dict(sorted(form.terms.items(), key=repr)), form.constant))
            for form in forms
        )
        return replace(inner, indices=tuple(indices))

    return affine_of(normal(expr))


def multiply(lhs: Affine, rhs: Affine) -> Affine | None:
    """Return the form lhs * rhs; None if it has more than `MAX_TERMS` terms."""
    if rhs.is_constant:
        return scale(lhs, rhs.constant)
    if lhs.is_constant:
        return scale(rhs, lhs.constant)
    # A chain of such products would grow exponentially, and the prover is not able to use it anyway.
    if len(lhs.terms) * len(rhs.terms) > MAX_TERMS:
        return None
    result = combine(scale(lhs, rhs.constant), Affine(rhs.terms, 0), lhs.constant)
    for left, coefficient in lhs.terms.items():
        for right, other in rhs.terms.items():
            result = combine(
                result, Affine({_multiply_atoms(left, right): 1}, 0), coefficient * other
            )
    return result


@lru_cache(maxsize=4096)
def _multiply_atoms(lhs: Expr, rhs: Expr) -> Expr:
    # In a fixed order, so that i * j and j * i are one atom.
    factors = sorted((*factors_of(lhs), *factors_of(rhs)), key=repr)
    return reduce(lambda left, right: Binary("mul", left, right), factors)


def factors_of(atom: Expr) -> tuple[Expr, ...]:
    """Return the factors of an atom.

    >>> from gossamer_ir.core.build import index_var, mul
    >>> [factor.name for factor in factors_of(mul(mul(index_var("i"), index_var("m")), index_var("n")))]
    ['i', 'm', 'n']
    """
    if isinstance(atom, Binary) and atom.op == "mul":
        return (*factors_of(atom.lhs), *factors_of(atom.rhs))
    return (atom,)


def shared_factors(atom: Expr, form: Affine) -> list[Expr]:
    """Return the factors of an atom that another product of the form shares. Only factors of degree one: the
    form is linear in each of them."""
    factors = factors_of(atom)
    if len(factors) == 1:
        return []
    products = [factors_of(term) for term in form.terms if term != atom]
    return [
        factor
        for factor in dict.fromkeys(factors)
        if any(factor in product for product in products)
        # In i * i the factor is bounded by itself: the sum of multipliers would contain it again.
        and all(product.count(factor) < 2 for product in (factors, *products))
    ]


def multiplier_of(factor: Expr, form: Affine) -> Affine:
    """Return the sum of what a factor is multiplied by in the atoms of a form.

    >>> from gossamer_ir.core.build import add, index_var, mul
    >>> i, m, n = map(index_var, "imn")
    >>> expr_of(multiplier_of(i, affine_of(add(mul(i, m), mul(n, i))))) == add(m, n)
    True
    """
    result = ZERO_FORM
    for atom, coefficient in form.terms.items():
        others = list(factors_of(atom))
        if factor in others:
            others.remove(factor)
            rest = Affine({reduce(_multiply_atoms, others): 1}, 0) if others else ONE_FORM
            result = combine(result, rest, coefficient)
    return result


def times(lhs: Affine, rhs: Affine) -> Affine:
    """Return the form lhs * rhs; a single atom, their product, if it has more than `MAX_TERMS` terms."""
    if not (lhs.terms or rhs.terms):
        return Affine({}, lhs.constant * rhs.constant)
    return multiply(lhs, rhs) or Affine({_multiply_atoms(expr_of(lhs), expr_of(rhs)): 1}, 0)


def quotient(form: Affine, by: Affine) -> Affine | None:
    """Return the form q with q * by == form; None if there is none, or none of at most `MAX_TERMS` terms.

    This is polynomial long division by leading terms; it must leave no remainder.

    >>> from gossamer_ir.core.build import ONE, add, index, index_var, mul
    >>> m, n = map(index_var, "mn")
    >>> rows, columns = (affine_of(add(mul(size, index(4)), ONE)) for size in (m, n))
    >>> quotient(times(rows, columns), columns) == rows
    True
    >>> quotient(rows, columns)
    """
    # 0 == q * 0 holds for every q, so there is no quotient.
    if form == by and by != ZERO_FORM:
        return ONE_FORM
    if not by.terms:
        return _divide_by_constant(form, by.constant)
    if not form.terms:
        return None if form.constant else ZERO_FORM
    (below, count), result = _leading_term(by), ZERO_FORM
    for _ in range(MAX_TERMS if len(by.terms) <= MAX_TERMS else 0):
        if form == ZERO_FORM:
            return result
        above, coefficient = _leading_term(form)
        left = _remaining_factors(above, below)
        # Integers have no fractions, so one leading term that does not divide decides for all.
        if left is None or coefficient % count:
            return None
        part = Affine({reduce(_multiply_atoms, left): 1}, 0) if left else ONE_FORM
        result = combine(result, part, coefficient // count)
        form = combine(form, times(part, by), -(coefficient // count))
    return None


def _divide_by_constant(form: Affine, divisor: int) -> Affine | None:
    if divisor == 0 or any(count % divisor for count in (form.constant, *form.terms.values())):
        return None
    terms = {atom: count // divisor for atom, count in form.terms.items()}
    return Affine(terms, form.constant // divisor)


def _leading_term(form: Affine) -> tuple[tuple[Expr, ...], int]:
    """Return the factors of the leading term of a form, and its coefficient. Terms are ordered by degree
    first, so that multiplying a form by a factor keeps its leading term."""
    terms = [(factors_of(atom), count) for atom, count in form.terms.items()]
    if form.constant:
        terms.append(((), form.constant))
    if len(terms) == 1:
        return terms[0]
    return max(terms, key=lambda term: (len(term[0]), sorted(map(repr, term[0]))))


def _remaining_factors(factors: Iterable[Expr], others: Iterable[Expr]) -> list[Expr] | None:
    """Return the factors without `others`; None if one of these is not a factor."""
    left = list(factors)
    for other in others:
        if other not in left:
            return None
        left.remove(other)
    return left


def factor_affine(form: Affine, sums: Iterable[Expr] = ()) -> tuple[int, tuple[Expr, ...]]:
    """Return a form as an integer times factors, in a fixed order: the common factors of all terms, those of
    the `sums` that divide the form, and the sum that is left.

    >>> from gossamer_ir.core.build import ONE, add, index, index_var, mul
    >>> m, n = map(index_var, "mn")
    >>> count, (first, second) = factor_affine(affine_of(mul(add(mul(m, index(4)), index(4)), n)))
    >>> count, first == add(m, ONE), second == n
    (4, True, True)
    """
    if not form.terms:
        return form.constant, ()
    factors: list[Expr] = []
    for divisor in sums:
        by = affine_of(divisor)
        # A constant divisor would divide forever; repeated factors are taken out as often as they occur.
        while by.terms and (divided := quotient(form, by)) is not None:
            factors.append(divisor)
            form = divided
    counts = [count for count in (form.constant, *form.terms.values()) if count]
    # The sign goes with the content, so that `factor_affine(-f)` has the factors of `factor_affine(f)`.
    content = gcd(*counts) if any(count > 0 for count in counts) else -gcd(*counts)
    shared = () if form.constant else _common_factors(form)
    part = Affine({reduce(_multiply_atoms, shared): content}, 0) if shared else Affine({}, content)
    left = quotient(form, part)
    if left is not None and not left.is_constant:
        factors.append(expr_of(left))
    factors += shared
    return content, tuple(sorted(factors, key=repr) if len(factors) > 1 else factors)


def _common_factors(form: Affine) -> tuple[Expr, ...]:
    """Return the factors, with multiplicity, that all terms of a form share."""
    several = list(map(factors_of, form.terms))
    if len(several) < 2:
        return several[0] if several else ()
    return tuple(reduce(and_, map(Counter, several)).elements())


def vscale_coefficient(form: Affine) -> int | None:
    """Return n for a form that is n times powers of vscale, None for any other form.

    >>> from gossamer_ir.core.build import index, index_var, mul
    >>> from gossamer_ir.nodes import VScale
    >>> vscale_coefficient(affine_of(mul(index(4), VScale()))), vscale_coefficient(Affine({}, 3))
    (4, 3)
    >>> vscale_coefficient(affine_of(index_var("n")))
    """
    number, others = factor_affine(form)
    return number if all(isinstance(other, VScale) for other in others) else None


def product_of(form: Affine) -> Expr:
    """Return a form as an expression that is the product of its factors, the integer first."""
    count, factors = factor_affine(form)
    return product((_number(count), *factors))


def combine(lhs: Affine, rhs: Affine, factor: int) -> Affine:
    """Return the form lhs + factor * rhs."""
    terms = dict(lhs.terms)
    for atom, coefficient in rhs.terms.items():
        total = terms.get(atom, 0) + factor * coefficient
        # No coefficient is zero, or equal forms would differ.
        if total:
            terms[atom] = total
        else:
            terms.pop(atom, None)
    return Affine(terms, lhs.constant + factor * rhs.constant)


def distance(lhs: Expr, rhs: Expr) -> int | None:
    """Return the constant c with lhs == rhs + c as machine integers, even if either side wraps; None if the
    difference is not constant.

    >>> from gossamer_ir.core.build import ONE, add, index, index_var
    >>> distance(add(index_var("i"), ONE), index_var("i")), distance(index_var("i"), index_var("j"))
    (1, None)
    >>> largest = index(2**63 - 1)
    >>> distance(add(add(add(index_var("i"), largest), largest), index(2)), index_var("i"))
    0
    """
    apart = affine_of(lhs) - affine_of(rhs)
    if apart.terms:
        return None
    # Modulo 2**bits: both sides may have wrapped, even differently often.
    return wrap_integer(apart.constant, DType.parse(dtype_of(lhs)).bits)


def scale(form: Affine, factor: int) -> Affine:
    """Return the form factor * form."""
    if factor == 0:
        return ZERO_FORM
    if factor == 1:
        return form
    return Affine({atom: c * factor for atom, c in form.terms.items()}, form.constant * factor)


def expr_of(form: Affine) -> Expr:
    """Return a form as an expression, positive terms first; `affine_of` maps it back to the same form. A
    number that int64 cannot represent is written as a sum of products of smaller ones, which wraps when
    evaluated.

    >>> from gossamer_ir.core.build import index_var
    >>> form = Affine({index_var("i"): 2**64}, -(2**63))
    >>> affine_of(expr_of(form)) == form
    True
    """
    result: Expr | None = None
    # Positive terms first, since the language has a subtraction and `neg` would be one more node.
    for atom, coefficient in sorted(form.terms.items(), key=lambda item: item[1] < 0):
        size = mul(atom, _number(abs(coefficient)))
        if result is None:
            result = size if coefficient > 0 else sub(ZERO, size)
        else:
            result = add(result, size) if coefficient > 0 else sub(result, size)
    if result is None:
        return _number(form.constant)
    # Not the least integer itself: its absolute value is not an int64.
    if _INT64_MIN < form.constant < 0:
        return sub(result, index(-form.constant))
    return add(result, _number(form.constant))


def _number(value: int) -> Expr:
    """Return an unbounded integer as an expression; a sum of products that is not folded if int64 is too
    small."""
    if _INT64_MIN <= value < -_INT64_MIN:
        return index(value)
    count, remainder = divmod(value, _RADIX)
    # Not `build.add`, which would fold, and so wrap, the number that is written here.
    return Binary("add", Binary("mul", _number(count), index(_RADIX)), index(remainder))
