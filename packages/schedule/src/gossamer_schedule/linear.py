"""Index expressions as sums of loop variables times coefficients, and what the sum determines.

A coefficient or an extent is a *product*: an integer and the atoms it is multiplied by (`vscale`,
or any expression without loop variables). Atoms are taken to be positive.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from gossamer_ir.build import ONE, add, index, integer_value, mul
from gossamer_ir.nodes import Binary, Expr, For, IfThenElse, Var
from gossamer_ir.walk import free_vars, substitute

Product: TypeAlias = tuple[int, tuple[Expr, ...]]
Values: TypeAlias = Mapping[str, Expr]
"""What block variables and lets stand for."""

UNIT: Product = (1, ())


class Form(msgspec.Struct, frozen=True):
    """`sum(coefficient * loop) + sum(count * atom)`; `opaque` are the loops that atoms depend on."""

    terms: dict[str, Product]
    base: dict[Expr, int]
    opaque: frozenset[str]


def product_of(expr: Expr) -> Product:
    """An expression as an integer times atoms."""
    value = integer_value(expr)
    if value is not None:
        return (value, ())
    if isinstance(expr, Binary) and expr.op == "mul":
        return times(product_of(expr.lhs), product_of(expr.rhs))
    return (1, (expr,))


def times(lhs: Product, rhs: Product) -> Product:
    """The product of two products, atoms in a fixed order."""
    return (lhs[0] * rhs[0], tuple(sorted(lhs[1] + rhs[1], key=repr)))


def is_multiple(product: Product, of: Product) -> bool:
    """Whether a product is a multiple of another, by its factors."""
    atoms = list(product[1])
    for atom in of[1]:
        if atom not in atoms:
            return False
        atoms.remove(atom)
    return of[0] != 0 and product[0] % of[0] == 0


def to_expr(product: Product) -> Expr:
    """The expression of a product."""
    result: Expr = index(product[0])
    for atom in product[1]:
        result = mul(result, atom)
    return result


def form_of(expr: Expr, values: Values, *, loops: Mapping[str, For]) -> Form:
    """The form of an int64 expression in loop variables."""
    match expr:
        case Var(name=name) if name in values:
            return form_of(values[name], values, loops=loops)
        case Var(name=name) if name in loops:
            return Form({name: UNIT}, {}, frozenset())
        case Binary(op="add" | "sub"):
            lhs = form_of(expr.lhs, values, loops=loops)
            rhs = form_of(expr.rhs, values, loops=loops)
            return _sum(lhs, rhs if expr.op == "add" else _scaled(rhs, (-1, ())))
        case Binary(op="mul"):
            return _multiplied(expr, values, loops=loops)
    return _atom(expr, values, loops=loops)


def _multiplied(expr: Binary, values: Values, *, loops: Mapping[str, For]) -> Form:
    lhs = form_of(expr.lhs, values, loops=loops)
    rhs = form_of(expr.rhs, values, loops=loops)
    if not _mentions_loop(rhs):
        return _scaled(lhs, product_of(_base_expr(rhs)))
    if not _mentions_loop(lhs):
        return _scaled(rhs, product_of(_base_expr(lhs)))
    return _atom(expr, values, loops=loops)


def _mentions_loop(form: Form) -> bool:
    return bool(form.terms or form.opaque)


def _base_expr(form: Form) -> Expr:
    result: Expr = index(0)
    for atom, count in form.base.items():
        result = add(result, mul(index(count), atom))
    return result


def _atom(expr: Expr, values: Values, *, loops: Mapping[str, For]) -> Form:
    value = integer_value(expr)
    if value is not None:
        return Form({}, {ONE: value} if value else {}, frozenset())
    resolved = resolve(expr, values)
    opaque = frozenset(name for name in free_vars(resolved) if name in loops)
    return Form({}, {resolved: 1}, opaque)


def resolve(expr: Any, values: Values) -> Any:
    """The expression with block variables and lets replaced by what they stand for."""
    while not values.keys().isdisjoint(free_vars(expr)):
        expr = substitute(expr, values)
    return expr


def _sum(lhs: Form, rhs: Form) -> Form:
    terms = dict(lhs.terms)
    for name, product in rhs.terms.items():
        old = terms.pop(name, None)
        total = product if old is None else _plus(old, product)
        if total[0]:
            terms[name] = total
    base = dict(lhs.base)
    for atom, count in rhs.base.items():
        base[atom] = base.get(atom, 0) + count
    return Form(terms, {a: n for a, n in base.items() if n}, lhs.opaque | rhs.opaque)


def _plus(lhs: Product, rhs: Product) -> Product:
    if lhs[1] == rhs[1]:
        return (lhs[0] + rhs[0], lhs[1])
    return product_of(add(to_expr(lhs), to_expr(rhs)))


def _scaled(form: Form, by: Product) -> Form:
    if by[0] == 0:
        return Form({}, {}, frozenset())
    terms = {name: times(product, by) for name, product in form.terms.items()}
    if not by[1]:
        base = {atom: count * by[0] for atom, count in form.base.items()}
        return Form(terms, base, form.opaque)
    factor = to_expr((1, by[1]))
    scaled = {mul(atom, factor): count * by[0] for atom, count in form.base.items()}
    return Form(terms, scaled, form.opaque)


def without_guard(extent: Expr) -> Expr:
    """The extent that `split` put under a condition."""
    if isinstance(extent, IfThenElse) and integer_value(extent.if_false) == 0:
        return extent.if_true
    return extent
