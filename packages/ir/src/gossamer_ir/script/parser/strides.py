"""Reads the strides of a buffer: a layout that is nested, as rows that are padded or stored in another
order, is a row-major buffer of the dimensions in the order in which they are stored.

A buffer of shape (m, n) and strides (ld, 1) is one of shape (m, ld); strides (1, ld) store columns, which
are the rows of a buffer of shape (n, ld); strides (2 * n, 2) leave out every other element, which makes a
last dimension of 2. Elements of two indices are never the same one then, whatever the sizes are: every
index stays below the extent of its dimension.

Strides that are not nested, such as (5, 2) of shape (2, 5), store a buffer in one dimension, as does an
offset. There, an index beyond its extent may name another element, as addresses do. The strides must be
numbers for which no two elements meet.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import gcd

from gossamer_ir.core.build import ONE, ZERO, add, index, integer_value, mul
from gossamer_ir.nodes import Binary, Expr
from gossamer_ir.script.parser.arguments import items_or_one
from gossamer_ir.script.parser.context import Context
from gossamer_ir.script.parser.expressions import index_expr
from gossamer_ir.script.parser.layouts import AnyLayout, FlatLayout, Layout, span

MOST_ELEMENTS = 1 << 14
"""Elements up to which a buffer of more than two dimensions is gone through."""

Monomial = tuple[int, "Counter[Expr]"]
"""A product: a number, and the other factors."""


def read_layout(ctx: Context, node: ast.expr, shape: tuple[Expr, ...]) -> AnyLayout:
    """The layout of a buffer of a shape with these strides, or `parse.strides`."""
    strides = [index_expr(ctx, item) for item in items_or_one(node)]
    if strides in ([], [ONE]):  # as published, whatever the number of dimensions
        return Layout(tuple(range(len(shape))), shape, is_spaced=False)
    if len(strides) != len(shape):
        raise ctx.error(
            "strides", f"There are {len(strides)} strides and {len(shape)} dimensions.", node
        )
    steps = [_product(stride) for stride in strides]
    if any(step[0] < 1 for step in steps):
        raise _refused(ctx, node, "A stride is not positive")
    numbers = [step[0] for step in steps if not step[1]]
    if len(numbers) == len(steps) and not _is_nested(shape, steps) and _are_apart(shape, numbers):
        return FlatLayout((span(shape, strides),), ZERO, tuple(strides))
    return _nested(ctx, node, shape, steps)


def displaced(layout: AnyLayout, offset: Expr) -> FlatLayout:
    """A layout whose first element lies behind others."""
    if isinstance(layout, FlatLayout):
        return FlatLayout((add(offset, layout.shape[0]),), offset, layout.strides)
    strides: dict[int, Expr] = {}
    size: Expr = ONE
    inner = layout.shape[len(layout.order) :]
    for extent in inner:
        size = mul(extent, size)
    for at, extent in reversed([*zip(layout.order, layout.shape, strict=False)]):
        strides[at] = size
        size = mul(extent, size)
    return FlatLayout((add(offset, size),), offset, tuple(strides[at] for at in sorted(strides)))


def _is_nested(shape: Sequence[Expr], steps: Sequence[Monomial]) -> bool:
    """Whether each of some strides divides the next larger one, and dimensions end before that."""
    sizes = [(step[0], integer_value(extent)) for step, extent in zip(steps, shape, strict=True)]
    ordered = sorted((item for item in sizes if item[1] != 1), key=lambda item: item[0])
    return all(
        outer % inner == 0 and (extent is None or extent * inner <= outer)
        for (inner, extent), (outer, _) in pairwise(ordered)
    )


def _are_apart(shape: Sequence[Expr], strides: Sequence[int]) -> bool:
    """Whether no two elements of a buffer are one, which two dimensions tell by their lengths, and more by
    their elements, as far as these are few."""
    found = zip(strides, map(integer_value, shape), strict=True)
    sizes = [(stride, extent) for stride, extent in found if extent != 1]
    if len(sizes) == 2:
        (first, many), (second, more) = sizes
        common = gcd(first, second)
        return any(
            extent is not None and extent <= steps // common
            for extent, steps in ((many, second), (more, first))
        )
    places = [0]
    for stride, extent in sizes:
        if extent is None or extent * len(places) > MOST_ELEMENTS:
            return False
        places = [place + stride * at for place in places for at in range(extent)]
    return len(set(places)) == len(places)


def _nested(ctx: Context, node: ast.expr, shape: tuple[Expr, ...], steps: list[Monomial]) -> Layout:
    """Dimensions from the innermost one out: each steps over a whole one of those inside."""
    single = [at for at, extent in enumerate(shape) if integer_value(extent) == 1]
    left = [at for at in range(len(shape)) if at not in single]
    order: list[int] = []
    extents: list[Expr] = []
    spacing: Expr = ONE
    inner: Monomial = (1, Counter())
    while left:
        at = _innermost(left, shape, steps, inner)
        if at is None:
            raise _refused(
                ctx, node, "No dimension steps over a whole number of those inside of it"
            )
        count = _quotient(steps[at], inner)
        if count is None:
            raise _refused(ctx, node, "A stride is not a multiple of the one inside of it")
        if not order:
            spacing = _expr(count)
        else:
            extents.append(_extent(ctx, node, shape[order[-1]], count))
        order.append(at)
        inner = steps[at]
        left.remove(at)
    extents += [shape[at] for at in order[-1:]]
    spaced = spacing != ONE
    return Layout(
        (*single, *reversed(order)),
        (*(ONE for _ in single), *reversed(extents), *((spacing,) if spaced else ())),
        is_spaced=spaced,
    )


def _innermost(
    left: Sequence[int], shape: tuple[Expr, ...], steps: list[Monomial], inner: Monomial
) -> int | None:
    """The dimension whose stride divides those of all others that are left; of several with one stride
    none, as they overlap."""
    for at in left:
        others = [other for other in left if other != at]
        quotients = [_quotient(steps[other], steps[at]) for other in others]
        if all(found is not None and found != (1, Counter()) for found in quotients):
            return at
    return None


def _extent(ctx: Context, node: ast.expr, extent: Expr, count: Monomial) -> Expr:
    """The extent of a dimension that the next one steps over: `count`, which must be enough."""
    size = integer_value(extent)
    if count == _product(extent):
        return extent
    if size is not None and not count[1] and count[0] < size:
        raise _refused(
            ctx, node, f"A dimension of {size} elements is stepped over after {count[0]}"
        )
    return _expr(count)


def _refused(ctx: Context, node: ast.expr, why: str) -> Exception:
    return ctx.error(
        "strides",
        f"{why}, so elements may overlap or are not stored in the order of nested dimensions.",
        node,
        hint="Expected strides such as [n, 1], [ld, 1] or [1, m], each a multiple of another, or numbers "
        "with which no two elements meet.",
    )


def _product(found: Expr) -> Monomial:
    """The factors of a size."""
    value = integer_value(found)
    if value is not None:
        return value, Counter()
    if isinstance(found, Binary) and found.op == "mul":
        left, right = _product(found.lhs), _product(found.rhs)
        return left[0] * right[0], left[1] + right[1]
    return 1, Counter([found])


def _quotient(whole: Monomial, part: Monomial) -> Monomial | None:
    """What a product is another times, if it is one."""
    if whole[0] % part[0] or part[1] - whole[1]:
        return None
    return whole[0] // part[0], whole[1] - part[1]


def _expr(found: Monomial) -> Expr:
    result: Expr = index(found[0])
    for factor in found[1].elements():
        result = mul(result, factor)
    return result
