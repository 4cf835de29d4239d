"""The extents of the arrays that are passed to a function, and bounds of their products."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import product
from math import prod
from typing import TypeAlias, TypeGuard

import msgspec

from gossamer_ir.arith.affine import factors_of
from gossamer_ir.arith.simplify import simplify
from gossamer_ir.core.axis_kinds import indptr_of, is_varied, width_of
from gossamer_ir.core.build import ONE, ZERO, add, index, integer_value
from gossamer_ir.core.limits import MAX_SIZE
from gossamer_ir.nodes import (
    AnyBuffer,
    Axis,
    Binary,
    Buffer,
    Cast,
    Const,
    Expr,
    Function,
    InRange,
    Load,
    SparseBuffer,
)
from gossamer_ir.traversal.free_vars import free_vars

MAX_ARRAY = 2**57
"""A bound of the elements of an array: addresses have at most 57 bits, and each element has its own."""

Ranges: TypeAlias = Mapping[str, InRange]
"""The facts that bound the elements of index buffers, by buffer."""


class CeilQuotient(msgspec.Struct, frozen=True):
    """A size divided by a number, rounded up."""

    size: Expr
    divisor: int


class ArrayExtents:
    """The extents of the arrays that are passed to a function. They do not depend on its body."""

    def __init__(self, buffers: tuple[AnyBuffer, ...], axes: tuple[Axis, ...]) -> None:
        self._bound = [buffer for buffer in buffers if buffer.handle is not None]
        self._axes = axes
        every: list[Expr] = []
        for buffer in self._bound:
            every += buffer.shape if isinstance(buffer, Buffer) else _extents_of(buffer, axes)
        self.every = tuple(every)
        self.sizes = {name: MAX_SIZE for extent in every for name in free_vars(extent)}
        self._shapes = [buffer.shape for buffer in self._bound if isinstance(buffer, Buffer)]
        # Only of arrays with one dimension: each of several extents may be large if another one is 0.
        extents: set[Expr] = {
            shape[0]
            for shape in self._shapes
            if len(shape) == 1 and not isinstance(shape[0], Const)
        }
        less: set[Expr] = {extent.lhs for extent in extents if _is_one_more(extent)}
        # Passes simplify the extents of loops but not those of buffers.
        self.extents = {*extents, *less, *map(simplify, extents), *map(simplify, less)}

    @cached_property
    def arrays(self) -> dict[tuple[Expr, ...], int]:
        """A bound of the product of the extents of each array, by these extents, and of the factors of an
        extent; computed on demand, since most products are small enough without it."""
        products = map(tuple, map(factors_of, self.extents))
        return _arrays((*self._shapes, *products, *_fixed_shapes(self._bound, self._axes)))

    def bound_of_product(self, factors: Sequence[Expr], ranges: Ranges) -> int | None:
        """Return a bound of a product whose factors are at most the extents of an array argument, each
        divided by a constant and rounded up; None for other products."""
        constants = [abs(value) for value in map(integer_value, factors) if value is not None]
        others = [factor for factor in factors if integer_value(factor) is None]
        whole = self.arrays.get(_sorted_extents(others))
        if whole is not None:
            return whole * prod(constants)
        parts = [_part_of_size(factor, ranges) or CeilQuotient(factor, 1) for factor in others]
        elements = self.arrays.get(_sorted_extents(part.size for part in parts))
        if elements is None:
            return None
        # ceil(size / d) < size / d + 1. Expanding the product of these sums gives one product for each
        # subset of the sizes. If an extent is 0, so is its part and the whole product; otherwise the product
        # of some extents is at most that of all, the number of elements.
        total = 0
        for kept in product(*((True, False) if part.divisor > 1 else (True,) for part in parts)):
            divisors = [part.divisor for part, is_kept in zip(parts, kept, strict=True) if is_kept]
            total += min(elements, MAX_SIZE ** len(divisors)) // prod(divisors) + 1
        return total * prod(constants)


# Memoized because passes produce functions that differ in their bodies only.
array_extents = lru_cache(maxsize=64)(ArrayExtents)


def extents_passed(function: Function) -> tuple[Expr, ...]:
    """Return the extents of the arrays that are passed to a function. They are not negative.

    >>> from gossamer_ir.core.build import index_var
    >>> n = index_var("n")
    >>> buffers = Buffer("X", (n,), "float32", "x"), Buffer("Y", (index(4),), "float32", None)
    >>> extents_passed(Function("f", (), (), buffers=buffers)) == (n,)
    True
    """
    return array_extents(function.buffers, function.axes).every


def _part_of_size(expr: Expr, ranges: Ranges) -> CeilQuotient | None:
    """Return an upper bound `size / divisor`, rounded up, of a value or of the difference of two values.

    The values are loaded from an array of offsets that a fact bounds to [0, size + 1), or are quotients
    of such values.
    """
    match expr:
        case Cast():
            return _part_of_size(expr.value, ranges)
        case Load():
            fact = ranges.get(expr.buffer)
            if fact is None or fact.low != ZERO or not _is_one_more(fact.high):
                return None
            return CeilQuotient(fact.high.lhs, 1)
        case Binary(op="sub"):
            above = _part_of_size(expr.lhs, ranges)
            return above if above == _part_of_size(expr.rhs, ranges) else None
        case Binary(op="add" | "floordiv"):
            quotient = _rounded_quotient(expr)
            if quotient is not None:
                dividend, divisor = quotient
                above = _part_of_size(dividend, ranges) or CeilQuotient(dividend, 1)
                return CeilQuotient(above.size, above.divisor * divisor)
    return None


def _rounded_quotient(expr: Binary) -> tuple[Expr, int] | None:
    """Return a dividend and a divisor whose quotient, rounded up, is at least the expression; None if it does
    not have such a form."""
    if expr.op == "add":
        quotient, remainder = expr.lhs, expr.rhs
        if not isinstance(quotient, Binary) or quotient.op != "floordiv":
            return None
        is_rounded_up = remainder == Binary(
            "min", Binary("floormod", quotient.lhs, quotient.rhs), ONE
        )
        divisor = integer_value(quotient.rhs)
        return (
            (quotient.lhs, divisor)
            if is_rounded_up and divisor is not None and divisor > 0
            else None
        )
    divisor = integer_value(expr.rhs)
    if expr.op != "floordiv" or divisor is None or divisor < 1:
        return None
    dividend = expr.lhs
    if isinstance(dividend, Binary) and dividend.op == "add":
        more = integer_value(dividend.rhs)
        if more is not None and more >= divisor - 1:
            return add(dividend.lhs, index(more - divisor + 1)), divisor
    return dividend, divisor


def _is_one_more(extent: Expr) -> TypeGuard[Binary]:
    """Return whether an extent has the form size + 1, as that of an array of offsets."""
    return isinstance(extent, Binary) and extent.op == "add" and extent.rhs == ONE


def _extents_of(buffer: SparseBuffer, axes: tuple[Axis, ...]) -> Iterator[Expr]:
    """Yield the extents of a sparse buffer along its axes that the shape of its array determines at a
    call."""
    for axis in axes:
        if axis.name in buffer.axes:
            indptr = indptr_of(axis)
            if indptr is None:
                yield width_of(axis)
            elif indptr.nnz is not None:
                yield indptr.nnz


def _fixed_shapes(
    buffers: Iterable[AnyBuffer], axes: tuple[Axis, ...]
) -> Iterator[tuple[Expr, ...]]:
    """Yield the shapes of the arrays of sparse buffers whose axes are all fixed."""
    lengths = {axis.name: width_of(axis) for axis in axes if not is_varied(axis)}
    for buffer in buffers:
        if not isinstance(buffer, Buffer) and lengths.keys() >= set(buffer.axes):
            yield tuple(lengths[name] for name in buffer.axes)


def _arrays(shapes: Iterable[tuple[Expr, ...]]) -> dict[tuple[Expr, ...], int]:
    """Return a bound of the product of the extents of an array that are not constant, by these extents."""
    arrays: dict[tuple[Expr, ...], int] = {}
    for shape in shapes:
        constant = prod(integer_value(extent) or 0 for extent in shape if isinstance(extent, Const))
        others = _sorted_extents(extent for extent in shape if not isinstance(extent, Const))
        if constant > 0:
            arrays[others] = min(arrays.get(others, MAX_ARRAY), MAX_ARRAY // constant)
    return arrays


def _sorted_extents(extents: Iterable[Expr]) -> tuple[Expr, ...]:
    return tuple(sorted(extents, key=repr))
