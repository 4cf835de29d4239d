"""Index maps that are one to one by their digits.

A digit of an index is `i`, `i // c`, `i % d` or `i // c % d`. A map whose results are made of digits, each
index being told by its digits and each digit standing in one result once, without gaps, is one to
one; it covers all places where the extents are multiples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from gossamer_ir.build import ONE, ZERO, add, conjoined, floordiv, index, integer_value, mul
from gossamer_ir.digits import ceildiv_by
from gossamer_ir.linear import UNIT, Product, is_multiple, product_of, times, to_expr
from gossamer_ir.nodes import Binary, Expr, IndexMap, Unary, Var
from gossamer_schedule.predicates import below


class Digit(msgspec.Struct, frozen=True):
    """A variable over a divisor, modulo a number (None: all that is left)."""

    var: str
    divisor: int
    modulus: int | None


class Place(msgspec.Struct, frozen=True):
    """Where a digit stands: in a result, times a factor; it takes so many values."""

    digit: Digit
    result: int
    factor: Product
    extent: Product


class Layout(msgspec.Struct, frozen=True):
    """A map that is one to one: the extents of its results, and where it puts each digit."""

    map: IndexMap
    extents: tuple[Expr, ...]
    places: tuple[Place, ...]
    padded: Mapping[str, Expr]
    """The extents of the variables that leave places unused."""

    def at(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """The place of an element."""
        values = dict(zip(self.map.vars, indices, strict=True))
        return tuple(_folded(found, values) for found in self.map.results)

    @property
    def losing(self) -> tuple[int, ...]:
        """The indices which, out of bounds, may give a place: those with a digit that has no modulus and is
        not the leading one of its result, and those that leave places unused."""
        return tuple(
            number
            for number, var in enumerate(self.map.vars)
            if var in self.padded or not self._is_leading(var)
        )

    def _is_leading(self, var: str) -> bool:
        """Whether the leading digit of an index is the leading one of a result, in which it shows whether
        the index is out of bounds."""
        tops = [at for at in self.places if at.digit.var == var and at.digit.modulus is None]
        return bool(tops) and all(
            times(at.factor, at.extent) == product_of(self.extents[at.result]) for at in tops
        )

    def is_unused(self, indices: Sequence[Expr]) -> Expr | None:
        """The condition that a place holds no element; None where all do."""
        inside = (below(self._index(name, indices), extent) for name, extent in self.padded.items())
        condition = conjoined(inside)
        return None if condition is None else Unary("not", condition)

    def _index(self, var: str, indices: Sequence[Expr]) -> Expr:
        """The index of the element at a place."""
        total: Expr = ZERO
        for place in self.places:
            if place.digit.var == var:
                value = floordiv(indices[place.result], to_expr(place.factor))
                if times(place.factor, place.extent) != product_of(self.extents[place.result]):
                    value = Binary("floormod", value, to_expr(place.extent))
                total = add(total, mul(value, index(place.digit.divisor)))
        return total


def layout_of(found: IndexMap, shape: Sequence[Expr]) -> Layout | None:
    """The layout that a map makes of a shape; None where it is not seen to be one to one."""
    extents = dict(zip(found.vars, shape, strict=True))
    places: list[Place] = []
    sizes: list[Expr] = []
    for result, expr in enumerate(found.results):
        size = UNIT
        for factor, digit in sorted(
            _terms(expr, found.vars) or (), key=lambda term: _rank(term[0])
        ):
            extent = _extent(digit, extents)
            if factor != size:
                return None
            places.append(Place(digit, result, factor, extent))
            size = times(size, extent)
        if not _terms(expr, found.vars):
            return None
        sizes.append(to_expr(size))
    if not all(_is_told(var, extents[var], places) for var in found.vars):
        return None
    padded = {var: extent for var, extent in extents.items() if not _is_exact(var, extent, places)}
    return Layout(found, tuple(sizes), tuple(places), padded)


def _rank(factor: Product) -> tuple[int, int]:
    """Factors in the order in which a number is made of digits."""
    return len(factor[1]), factor[0]


def _terms(expr: Expr, names: Sequence[str]) -> list[tuple[Product, Digit]] | None:
    """The digits whose multiples an expression is the sum of."""
    if isinstance(expr, Binary) and expr.op == "add":
        lhs, rhs = _terms(expr.lhs, names), _terms(expr.rhs, names)
        return None if lhs is None or rhs is None else lhs + rhs
    digit = _digit(expr, names)
    if digit is not None:
        return [(UNIT, digit)]
    if isinstance(expr, Binary) and expr.op == "mul":
        for factor, inner in ((expr.lhs, expr.rhs), (expr.rhs, expr.lhs)):
            digit = _digit(inner, names)
            if digit is not None:
                return [(product_of(factor), digit)]
    return None


def _digit(expr: Expr, names: Sequence[str]) -> Digit | None:
    if isinstance(expr, Var):
        return Digit(expr.name, 1, None) if expr.name in names else None
    if not isinstance(expr, Binary) or expr.op not in ("floordiv", "floormod"):
        return None
    inner, by = _digit(expr.lhs, names), integer_value(expr.rhs)
    if inner is None or by is None or by < 1:
        return None
    if inner.modulus is not None and inner.modulus % by:
        return None
    if expr.op == "floormod":
        return Digit(inner.var, inner.divisor, by)
    left = None if inner.modulus is None else inner.modulus // by
    return Digit(inner.var, inner.divisor * by, left)


def _extent(digit: Digit, extents: Mapping[str, Expr]) -> Product:
    if digit.modulus is not None:
        return (digit.modulus, ())
    return product_of(ceildiv_by(extents[digit.var], (digit.divisor, ())))


def _is_told(var: str, extent: Expr, places: Sequence[Place]) -> bool:
    """Whether the digits of a variable tell its value."""
    digits = sorted(
        (place.digit for place in places if place.digit.var == var), key=lambda at: at.divisor
    )
    expected: int | None = 1
    for digit in digits:
        if digit.divisor != expected:
            return False
        expected = None if digit.modulus is None else expected * digit.modulus
    return expected is None or (extent == ONE and not digits)


def _is_exact(var: str, extent: Expr, places: Sequence[Place]) -> bool:
    divisors = [place.digit.divisor for place in places if place.digit.var == var]
    return is_multiple(product_of(extent), (max(divisors, default=1), ()))


def _folded(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """An expression at values of its variables."""
    if isinstance(expr, Var):
        return values.get(expr.name, expr)
    if isinstance(expr, Binary):
        lhs, rhs = _folded(expr.lhs, values), _folded(expr.rhs, values)
        whole, by = integer_value(lhs), integer_value(rhs)
        if expr.op == "floormod" and whole is not None and by:
            return index(whole % by)
        build = {"add": add, "mul": mul, "floordiv": floordiv}.get(expr.op)
        return Binary(expr.op, lhs, rhs) if build is None else build(lhs, rhs)
    return expr
