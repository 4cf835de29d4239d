"""The sizes that must be multiples of a power of two, so that an index is one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import gcd
from typing import TypeAlias

import msgspec

from gossamer_ir.arith.affine import affine_of
from gossamer_ir.core.build import integer_value
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import Binary, Cast, Expr, Var

SizeMultiples: TypeAlias = Mapping[str, int]
"""Powers of two of which integer parameters must be multiples, by the names of the parameters."""


class Multiples(msgspec.Struct, frozen=True):
    """Finds the sizes that make index expressions multiples of a power of two.

    Only powers of two: an integer that wraps around remains a multiple of them.

    >>> from gossamer_ir.core.build import index, index_var, mul
    >>> multiples = Multiples({}, frozenset({"n"}))
    >>> multiples.sizes(mul(index_var("i"), index(4)), 4), multiples.sizes(index_var("i"), 4)
    ({}, None)
    >>> multiples.sizes(mul(index_var("i"), index_var("n")), 4)
    {'n': 4}
    """

    lets: Mapping[str, Expr]
    """The values of variables, by their names."""
    params: frozenset[str]
    """The names of integer parameters."""

    def sizes(self, expr: Expr, unit: int) -> SizeMultiples | None:
        """Return what makes an expression a multiple of `unit`; None if nothing is known to."""
        form = affine_of(expr)
        if form.constant % unit:
            return None
        return _all_of(
            self._atom(atom, unit // gcd(factor, unit)) for atom, factor in form.terms.items()
        )

    def product_sizes(self, factors: Iterable[Expr], unit: int) -> SizeMultiples | None:
        """Return what makes a product of expressions a multiple of `unit`; None if nothing is known to."""
        symbolic = []
        for factor in factors:
            value = integer_value(factor)
            if value is None:
                symbolic.append(factor)
            else:
                unit //= gcd(value, unit)
        if unit == 1:
            return {}
        ways = [sizes for factor in symbolic if (sizes := self.sizes(factor, unit)) is not None]
        return min(ways, key=len, default=None)

    # Other expressions and operations: nothing is known about them.
    def _atom(self, atom: Expr, unit: int) -> SizeMultiples | None:
        if unit == 1:
            return {}
        match atom:
            case Var(name=name) if name in self.lets:
                return self.sizes(self.lets[name], unit)
            case Var(name=name) if name in self.params:
                return {name: unit}
            case Cast(value=value) if DType.parse(dtype_of(value)).is_integer:
                return self.sizes(value, unit)
            case Binary(op="mul", lhs=lhs, rhs=rhs):
                return self.product_sizes((lhs, rhs), unit)
            case Binary(op="min" | "max" | "floormod", lhs=lhs, rhs=rhs):
                return _all_of((self.sizes(lhs, unit), self.sizes(rhs, unit)))
        return None


def _all_of(parts: Iterable[SizeMultiples | None]) -> SizeMultiples | None:
    """Return what all parts require; None if one of them has no condition."""
    joined: SizeMultiples = {}
    for part in parts:
        if part is None:
            return None
        joined = joined_sizes(joined, part)
    return joined


def joined_sizes(one: SizeMultiples, other: SizeMultiples) -> dict[str, int]:
    """Return what both require: the larger power of two for each name."""
    return {name: max(one.get(name, 1), other.get(name, 1)) for name in (*one, *other)}
