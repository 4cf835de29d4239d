"""Reads declared relations and facts: `T.sp.assume(subset(J1, J2))`, `T.assume(monotone(X))`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from gossamer_ir.core.build import ONE, add
from gossamer_ir.nodes import (
    RELATION_KINDS,
    BitCounts,
    Distinct,
    Fact,
    HasValue,
    InRange,
    Monotone,
    PaddedSlots,
    ProductSteps,
    Relation,
    SortedSegments,
    SparseBuffer,
)
from gossamer_ir.script.parser.arguments.call_arguments import bind, dotted, items
from gossamer_ir.script.parser.arguments.name_lookup import plain_buffer_named
from gossamer_ir.script.parser.arguments.statics import required_bool
from gossamer_ir.script.parser.declarations.axes import axis_argument
from gossamer_ir.script.parser.expressions.expression_readers import index_expr
from gossamer_ir.script.parser.state.context import ParserContext


def assume_axes(ctx: ParserContext, call: ast.Call) -> None:
    """Read `T.sp.assume(subset(J1, J2))`: a relation between the coordinates of two axes."""
    inner = _claim(ctx, call, RELATION_KINDS)
    given = bind(ctx, inner, "left right", required=2)
    left, right = axis_argument(ctx, given["left"]), axis_argument(ctx, given["right"])
    ctx.function.relations.append(ctx.mark(Relation(_name(inner), left, right), call))  # type: ignore[arg-type]  # checked by _claim


def assume_buffers(ctx: ParserContext, call: ast.Call) -> None:
    """Read `T.assume(in_range(X, 0, n))` and the other facts about index buffers."""
    inner = _claim(ctx, call, tuple(FACT_READERS))
    ctx.function.facts.append(ctx.mark(FACT_READERS[_name(inner)](ctx, inner), call))


def assume_buffer_domain(ctx: ParserContext, call: ast.Call) -> None:
    """Read the published `T.assume_buffer_domain(X, [low, high])`, an `in_range` fact.

    The upper bound is exclusive for indices and inclusive for an indptr, which is recognized by its extra
    storage. For a buffer that the function writes it is dropped as a hint: values that are read from such a
    buffer are checked where they are used.
    """
    given = bind(ctx, call, "buffer domain", required=2)
    domain = items(ctx, given["domain"], "[low, high]")
    if len(domain) != 2:
        raise ctx.error("domain", "Expected [low, high].", given["domain"])
    buffer = plain_buffer_named(ctx, given["buffer"])
    low, high = index_expr(ctx, domain[0]), index_expr(ctx, domain[1])
    if isinstance(buffer, SparseBuffer) and buffer.extra_storage:
        high = add(high, ONE)
    ctx.function.hints.append(ctx.mark(InRange(buffer.name, low, high), call))
    ctx.function.facts.append(ctx.function.hints[-1])


def _claim(ctx: ParserContext, call: ast.Call, known: tuple[str, ...]) -> ast.Call:
    node = bind(ctx, call, "claim", required=1)["claim"]
    if not isinstance(node, ast.Call) or _name(node) not in known:
        raise ctx.error(
            "assumption",
            f"'{ctx.text_of(node)}' cannot be assumed.",
            node,
            hint=f"Expected one of {', '.join(known)}.",
        )
    return node


def _name(call: ast.Call) -> str:
    if isinstance(call.func, ast.Name):
        return call.func.id
    return (dotted(call.func) or "").removeprefix("sp.")


def _relation(ctx: ParserContext, call: ast.Call) -> Fact:
    given = bind(ctx, call, "left right", required=2)
    left, right = (plain_buffer_named(ctx, given[side]).name for side in ("left", "right"))
    return Relation(_name(call), left, right)  # type: ignore[arg-type]  # checked by _claim


def _in_range(ctx: ParserContext, call: ast.Call) -> Fact:
    given = bind(ctx, call, "buffer low high", required=3)
    low, high = index_expr(ctx, given["low"]), index_expr(ctx, given["high"])
    return InRange(_buffer(ctx, given), low, high)


def _monotone(ctx: ParserContext, call: ast.Call) -> Fact:
    return Monotone(_buffer(ctx, bind(ctx, call, "buffer", required=1)))


def _known_value(ctx: ParserContext, call: ast.Call) -> Fact:
    given = bind(ctx, call, "buffer index value", required=3)
    at, value = index_expr(ctx, given["index"]), index_expr(ctx, given["value"])
    return HasValue(_buffer(ctx, given), at, value)


def _product_steps(ctx: ParserContext, call: ast.Call) -> Fact:
    given = bind(ctx, call, "buffer left right", required=3)
    left, right = (plain_buffer_named(ctx, given[side]).name for side in ("left", "right"))
    return ProductSteps(_buffer(ctx, given), left, right)


def _sorted_segments(ctx: ParserContext, call: ast.Call) -> Fact:
    given = bind(ctx, call, "buffer indptr unique", required=1)
    indptr = plain_buffer_named(ctx, given["indptr"]).name if "indptr" in given else None
    unique = required_bool(ctx, given["unique"], "unique") if "unique" in given else False
    return SortedSegments(_buffer(ctx, given), indptr, unique)


def _distinct(ctx: ParserContext, call: ast.Call) -> Fact:
    return Distinct(_buffer(ctx, bind(ctx, call, "buffer", required=1)))


def _bit_counts(ctx: ParserContext, call: ast.Call) -> Fact:
    given = bind(ctx, call, "buffer indptr length", required=3)
    indptr = plain_buffer_named(ctx, given["indptr"]).name
    return BitCounts(_buffer(ctx, given), indptr, index_expr(ctx, given["length"]))


def _padded_slots(ctx: ParserContext, call: ast.Call) -> Fact:
    given = bind(ctx, call, "buffer length", required=2)
    return PaddedSlots(_buffer(ctx, given), index_expr(ctx, given["length"]))


def _buffer(ctx: ParserContext, given: dict[str, ast.expr]) -> str:
    return plain_buffer_named(ctx, given["buffer"]).name


FACT_READERS: Mapping[str, Callable[[ParserContext, ast.Call], Fact]] = {
    **dict.fromkeys(RELATION_KINDS, _relation),
    "in_range": _in_range,
    "monotone": _monotone,
    "has_value": _known_value,
    "product_steps": _product_steps,
    "sorted_segments": _sorted_segments,
    "distinct": _distinct,
    "bit_counts": _bit_counts,
    "padded_slots": _padded_slots,
}
"""The readers of facts, by their name in `T.assume`."""
