"""Index expressions as sums of loop variables times coefficients, and what the sum determines.

A coefficient or an extent is a *product*: an integer and the atoms it is multiplied by (`vscale`,
or any expression without loop variables). Atoms are taken to be positive.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from gossamer_ir.affine import Affine, combine, expr_of, scale
from gossamer_ir.build import add, index, integer_value, mul
from gossamer_ir.nodes import Binary, Expr, For, Var
from gossamer_ir.touches import Values
from gossamer_ir.walk import free_vars, resolve

Product: TypeAlias = tuple[int, tuple[Expr, ...]]

UNIT: Product = (1, ())
NOTHING = Affine({}, 0)


class Form(msgspec.Struct, frozen=True, gc=False):
    """`sum(coefficient * loop) + base`; `opaque` are the loops that atoms of the base depend on."""

    terms: dict[str, Product]
    base: Affine
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
    atoms = lhs[1] + rhs[1]
    return (lhs[0] * rhs[0], tuple(sorted(atoms, key=repr)) if len(atoms) > 1 else atoms)


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
            return Form({name: UNIT}, NOTHING, frozenset())
        case Binary(op="add" | "sub"):
            lhs = form_of(expr.lhs, values, loops=loops)
            rhs = form_of(expr.rhs, values, loops=loops)
            return _sum(lhs, rhs if expr.op == "add" else scaled(rhs, (-1, ())))
        case Binary(op="mul"):
            return _multiplied(expr, values, loops=loops)
    return _atom(expr, values, loops=loops)


def _multiplied(expr: Binary, values: Values, *, loops: Mapping[str, For]) -> Form:
    lhs = form_of(expr.lhs, values, loops=loops)
    rhs = form_of(expr.rhs, values, loops=loops)
    if not _mentions_loop(rhs):
        return scaled(lhs, product_of(expr_of(rhs.base)))
    if not _mentions_loop(lhs):
        return scaled(rhs, product_of(expr_of(lhs.base)))
    return _atom(expr, values, loops=loops)


def _mentions_loop(form: Form) -> bool:
    return bool(form.terms or form.opaque)


def _atom(expr: Expr, values: Values, *, loops: Mapping[str, For]) -> Form:
    value = integer_value(expr)
    if value is not None:
        return Form({}, Affine({}, value), frozenset())
    resolved = resolve(expr, values)
    opaque = frozenset(name for name in free_vars(resolved) if name in loops)
    return Form({}, Affine({resolved: 1}, 0), opaque)


def _sum(lhs: Form, rhs: Form) -> Form:
    terms = dict(lhs.terms)
    for name, product in rhs.terms.items():
        old = terms.pop(name, None)
        total = product if old is None else _plus(old, product)
        if total[0]:
            terms[name] = total
    return Form(terms, combine(lhs.base, rhs.base, 1), lhs.opaque | rhs.opaque)


def _plus(lhs: Product, rhs: Product) -> Product:
    if lhs[1] == rhs[1]:
        return (lhs[0] + rhs[0], lhs[1])
    return product_of(add(to_expr(lhs), to_expr(rhs)))


def scaled(form: Form, by: Product) -> Form:
    """The form times a product."""
    if by[0] == 0:
        return Form({}, NOTHING, frozenset())
    terms = {name: times(product, by) for name, product in form.terms.items()}
    base = scale(form.base, by[0])
    if by[1]:
        factor = to_expr((1, by[1]))
        atoms = {mul(atom, factor): count for atom, count in base.terms.items()}
        base = combine(Affine(atoms, 0), Affine({factor: 1}, 0), base.constant)
    return Form(terms, base, form.opaque)
