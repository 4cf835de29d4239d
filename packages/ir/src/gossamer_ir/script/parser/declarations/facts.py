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
from gossamer_ir.script.parser.arguments.call_arguments import bind, dotted_name, items
from gossamer_ir.script.parser.arguments.name_lookup import plain_buffer_named
from gossamer_ir.script.parser.arguments.statics import required_bool
from gossamer_ir.script.parser.declarations.axes import axis_argument
from gossamer_ir.script.parser.expressions.expression_parsers import index_expr
from gossamer_ir.script.parser.state.context import ParserContext


def assume_axes(context: ParserContext, call: ast.Call) -> None:
    """Parse `T.sp.assume(subset(J1, J2))`: a relation between the coordinates of two axes."""
    inner = _claim(context, call, RELATION_KINDS)
    arguments = bind(context, inner, "left right", required=2)
    left, right = (
        axis_argument(context, arguments["left"]),
        axis_argument(context, arguments["right"]),
    )
    context.function.relations.append(context.mark(Relation(_name(inner), left, right), call))  # type: ignore[arg-type]  # checked by _claim


def assume_buffers(context: ParserContext, call: ast.Call) -> None:
    """Parse `T.assume(in_range(X, 0, n))` and the other facts about index buffers."""
    inner = _claim(context, call, tuple(FACT_PARSERS))
    context.function.facts.append(context.mark(FACT_PARSERS[_name(inner)](context, inner), call))


def assume_buffer_domain(context: ParserContext, call: ast.Call) -> None:
    """Parse the published `T.assume_buffer_domain(X, [low, high])`, an `in_range` fact.

    The upper bound is exclusive for indices and inclusive for an indptr, which is recognized by its extra
    storage. For a buffer that the function writes it is dropped as a hint: values that are read from such a
    buffer are checked where they are used.
    """
    arguments = bind(context, call, "buffer domain", required=2)
    domain = items(context, arguments["domain"], "[low, high]")
    if len(domain) != 2:
        raise context.error("domain", "Expected [low, high].", arguments["domain"])
    buffer = plain_buffer_named(context, arguments["buffer"])
    low, high = index_expr(context, domain[0]), index_expr(context, domain[1])
    if isinstance(buffer, SparseBuffer) and buffer.extra_storage:
        high = add(high, ONE)
    context.function.hints.append(context.mark(InRange(buffer.name, low, high), call))
    context.function.facts.append(context.function.hints[-1])


def _claim(context: ParserContext, call: ast.Call, claims: tuple[str, ...]) -> ast.Call:
    node = bind(context, call, "claim", required=1)["claim"]
    if not isinstance(node, ast.Call) or _name(node) not in claims:
        raise context.error(
            "assumption",
            f"'{context.text_of(node)}' cannot be assumed.",
            node,
            hint=f"Expected one of {', '.join(claims)}.",
        )
    return node


def _name(call: ast.Call) -> str:
    if isinstance(call.func, ast.Name):
        return call.func.id
    return (dotted_name(call.func) or "").removeprefix("sp.")


def _parse_relation(context: ParserContext, call: ast.Call) -> Fact:
    arguments = bind(context, call, "left right", required=2)
    left, right = (plain_buffer_named(context, arguments[side]).name for side in ("left", "right"))
    return Relation(_name(call), left, right)  # type: ignore[arg-type]  # checked by _claim


def _parse_in_range(context: ParserContext, call: ast.Call) -> Fact:
    arguments = bind(context, call, "buffer low high", required=3)
    low, high = index_expr(context, arguments["low"]), index_expr(context, arguments["high"])
    return InRange(_buffer(context, arguments), low, high)


def _parse_monotone(context: ParserContext, call: ast.Call) -> Fact:
    return Monotone(_buffer(context, bind(context, call, "buffer", required=1)))


def _parse_known_value(context: ParserContext, call: ast.Call) -> Fact:
    arguments = bind(context, call, "buffer index value", required=3)
    at, value = index_expr(context, arguments["index"]), index_expr(context, arguments["value"])
    return HasValue(_buffer(context, arguments), at, value)


def _parse_product_steps(context: ParserContext, call: ast.Call) -> Fact:
    arguments = bind(context, call, "buffer left right", required=3)
    left, right = (plain_buffer_named(context, arguments[side]).name for side in ("left", "right"))
    return ProductSteps(_buffer(context, arguments), left, right)


def _parse_sorted_segments(context: ParserContext, call: ast.Call) -> Fact:
    arguments = bind(context, call, "buffer indptr unique", required=1)
    indptr = (
        plain_buffer_named(context, arguments["indptr"]).name if "indptr" in arguments else None
    )
    unique = (
        required_bool(context, arguments["unique"], "unique") if "unique" in arguments else False
    )
    return SortedSegments(_buffer(context, arguments), indptr, unique)


def _parse_distinct(context: ParserContext, call: ast.Call) -> Fact:
    return Distinct(_buffer(context, bind(context, call, "buffer", required=1)))


def _parse_bit_counts(context: ParserContext, call: ast.Call) -> Fact:
    arguments = bind(context, call, "buffer indptr length", required=3)
    indptr = plain_buffer_named(context, arguments["indptr"]).name
    return BitCounts(_buffer(context, arguments), indptr, index_expr(context, arguments["length"]))


def _parse_padded_slots(context: ParserContext, call: ast.Call) -> Fact:
    arguments = bind(context, call, "buffer length", required=2)
    return PaddedSlots(_buffer(context, arguments), index_expr(context, arguments["length"]))


def _buffer(context: ParserContext, arguments: dict[str, ast.expr]) -> str:
    return plain_buffer_named(context, arguments["buffer"]).name


FACT_PARSERS: Mapping[str, Callable[[ParserContext, ast.Call], Fact]] = {
    **dict.fromkeys(RELATION_KINDS, _parse_relation),
    "in_range": _parse_in_range,
    "monotone": _parse_monotone,
    "has_value": _parse_known_value,
    "product_steps": _parse_product_steps,
    "sorted_segments": _parse_sorted_segments,
    "distinct": _parse_distinct,
    "bit_counts": _parse_bit_counts,
    "padded_slots": _parse_padded_slots,
}
"""The parsers of facts, by their name in `T.assume`."""
