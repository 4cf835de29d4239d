"""Reads the strides of a buffer as a layout.

Nested strides, of which each is a multiple of the next smaller one, become a row-major buffer with the
dimensions in storage order. A buffer of shape (m, n) with strides (ld, 1) has the stored shape (m, ld).
With strides (1, ld) it is stored by columns, with the shape (n, ld). With strides (2 * n, 2) every other
slot is unused, and the stored shape is (m, n, 2). Different indices never name the same element in these
layouts, whatever the sizes are, because each index is below the extent of its dimension.

Other strides, such as (5, 2) for the shape (2, 5), and offsets, make a buffer of one dimension. An index
beyond its extent may then name another element. The strides must be numbers for which no two elements
coincide.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import gcd
from typing import TypeAlias

from gossamer_ir.core.build import ONE, ZERO, add, index, integer_value, mul
from gossamer_ir.errors import ParseError
from gossamer_ir.nodes import Binary, Expr
from gossamer_ir.script.parser.arguments.call_arguments import items_or_one
from gossamer_ir.script.parser.expressions.expression_parsers import index_expr
from gossamer_ir.script.parser.state.context import ParserContext
from gossamer_ir.script.parser.state.layouts import AnyLayout, FlatLayout, NestedLayout, span
from gossamer_support.message_texts import amount

ENUMERATED_ELEMENTS = 1 << 14
"""Maximum number of elements of a buffer of more than two dimensions whose positions are enumerated."""

Monomial: TypeAlias = tuple[int, "Counter[Expr]"]
"""A product: its numeric factor, and its symbolic factors."""


def parse_layout(context: ParserContext, node: ast.expr, shape: tuple[Expr, ...]) -> AnyLayout:
    """Return the layout of a buffer with a shape and these strides; raises `parse.strides` if there is
    none."""
    strides = [index_expr(context, item) for item in items_or_one(node)]
    if strides in ([], [ONE]):  # as published, whatever the number of dimensions
        return NestedLayout(tuple(range(len(shape))), shape, is_spaced=False)
    if len(strides) != len(shape):
        raise context.error(
            "strides",
            f"There are {amount(len(strides), 'stride')}, but {amount(len(shape), 'dimension')}.",
            node,
        )
    steps = [_product(stride) for stride in strides]
    if any(step[0] < 1 for step in steps):
        raise _stride_error(context, node, "A stride is not positive")
    numbers = [step[0] for step in steps if not step[1]]
    if len(numbers) == len(steps) and not _is_nested(shape, steps) and _are_apart(shape, numbers):
        return FlatLayout((span(shape, strides),), ZERO, tuple(strides))
    return _nested_layout(context, node, shape, steps)


def with_offset(layout: AnyLayout, offset: Expr) -> FlatLayout:
    """Return a layout whose first element is at an offset in the array."""
    if isinstance(layout, FlatLayout):
        return FlatLayout((add(offset, layout.shape[0]),), offset, layout.strides)
    strides: dict[int, Expr] = {}
    size: Expr = ONE
    # The slots of the layout beyond its dimensions are unused ones between elements.
    inner = layout.shape[len(layout.order) :]
    for extent in inner:
        size = mul(extent, size)
    for dimension, extent in reversed([*zip(layout.order, layout.shape, strict=False)]):
        strides[dimension] = size
        size = mul(extent, size)
    return FlatLayout(
        (add(offset, size),), offset, tuple(strides[dimension] for dimension in sorted(strides))
    )


def _is_nested(shape: Sequence[Expr], steps: Sequence[Monomial]) -> bool:
    """Return whether each stride divides the next larger one and its dimension fits between them."""
    sizes = [(step[0], integer_value(extent)) for step, extent in zip(steps, shape, strict=True)]
    ordered = sorted((item for item in sizes if item[1] != 1), key=lambda item: item[0])
    return all(
        outer % inner == 0 and (extent is None or extent * inner <= outer)
        for (inner, extent), (outer, _) in pairwise(ordered)
    )


def _are_apart(shape: Sequence[Expr], strides: Sequence[int]) -> bool:
    """Return whether no two elements of a buffer are proved to coincide.

    Two dimensions are decided by their extents; more of them by enumeration, if there are at most
    `ENUMERATED_ELEMENTS` elements.
    """
    pairs = zip(strides, map(integer_value, shape), strict=True)
    sizes = [(stride, extent) for stride, extent in pairs if extent != 1]
    # Elements coincide if a multiple of one stride is one of the other: for two dimensions the least
    # common multiple decides, also if an extent is unknown.
    if len(sizes) == 2:
        (first, many), (second, more) = sizes
        common = gcd(first, second)
        return any(
            extent is not None and extent <= steps // common
            for extent, steps in ((many, second), (more, first))
        )
    offsets = [0]
    for stride, extent in sizes:
        if extent is None or extent * len(offsets) > ENUMERATED_ELEMENTS:
            return False
        offsets = [offset + stride * dimension for offset in offsets for dimension in range(extent)]
    return len(set(offsets)) == len(offsets)


def _nested_layout(
    context: ParserContext, node: ast.expr, shape: tuple[Expr, ...], steps: list[Monomial]
) -> NestedLayout:
    """Return the layout for nested strides: each stride is a multiple of that of the dimension inside of
    it."""
    # The stride of a dimension of one element is never used, so any value fits.
    single = [number for number, extent in enumerate(shape) if integer_value(extent) == 1]
    left = [dimension for dimension in range(len(shape)) if dimension not in single]
    order: list[int] = []
    extents: list[Expr] = []
    spacing: Expr = ONE
    inner: Monomial = (1, Counter())
    while left:
        dimension = _innermost(left, shape, steps, inner)
        if dimension is None:
            raise _stride_error(
                context, node, "The strides are not nested: none of them divides all others"
            )
        count = _quotient(steps[dimension], inner)
        if count is None:
            raise _stride_error(context, node, "A stride is not a multiple of the next inner one")
        if not order:
            spacing = _expr(count)
        else:
            extents.append(_extent(context, node, shape[order[-1]], count))
        order.append(dimension)
        inner = steps[dimension]
        left.remove(dimension)
    extents += [shape[dimension] for dimension in order[-1:]]
    spaced = spacing != ONE
    return NestedLayout(
        (*single, *reversed(order)),
        (*(ONE for _ in single), *reversed(extents), *((spacing,) if spaced else ())),
        is_spaced=spaced,
    )


def _innermost(
    left: Sequence[int], shape: tuple[Expr, ...], steps: list[Monomial], inner: Monomial
) -> int | None:
    """Return the dimension whose stride divides those of all others in `left`, None if there is none.

    Dimensions with equal strides overlap, so that none of them qualifies.
    """
    for dimension in left:
        others = [other for other in left if other != dimension]
        quotients = [_quotient(steps[other], steps[dimension]) for other in others]
        if all(quotient is not None and quotient != (1, Counter()) for quotient in quotients):
            return dimension
    return None


def _extent(context: ParserContext, node: ast.expr, extent: Expr, count: Monomial) -> Expr:
    """Return the stored extent of a dimension: `count`, the quotient of the next stride and its own.

    Raises `parse.strides` if it is smaller than `extent`.
    """
    size = integer_value(extent)
    if count == _product(extent):
        return extent
    if size is not None and not count[1] and count[0] < size:
        raise _stride_error(
            context,
            node,
            f"The stride leaves room for {count[0]} of {size} elements of a dimension",
        )
    return _expr(count)


def _stride_error(context: ParserContext, node: ast.expr, why: str) -> ParseError:
    return context.error(
        "strides",
        f"{why}, so elements may overlap or are not stored in the order of nested dimensions.",
        node,
        hint="Expected strides such as [n, 1], [ld, 1] or [1, m], each a multiple of another, or numbers "
        "for which no two elements coincide.",
    )


def _product(expr: Expr) -> Monomial:
    """Return a size as a product of factors."""
    value = integer_value(expr)
    if value is not None:
        return value, Counter()
    if isinstance(expr, Binary) and expr.op == "mul":
        left, right = _product(expr.lhs), _product(expr.rhs)
        return left[0] * right[0], left[1] + right[1]
    return 1, Counter([expr])


def _quotient(whole: Monomial, part: Monomial) -> Monomial | None:
    """Return the exact quotient of two products, None if `part` does not divide `whole`."""
    if whole[0] % part[0] or part[1] - whole[1]:
        return None
    return whole[0] // part[0], whole[1] - part[1]


def _expr(monomial: Monomial) -> Expr:
    result: Expr = index(monomial[0])
    for factor in monomial[1].elements():
        result = mul(result, factor)
    return result
