"""Prefetches of the elements that a later iteration reads, under the conditions that they need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from gossamer_ir.core.build import ZERO, add, ceildiv, index, index_var, integer_value, mul
from gossamer_ir.core.conditions import short_circuit_conjunction
from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import Buffer, Compare, Expr, For, If, Prefetch, Stmt
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_ir.traversal.substitute import substitute
from gossamer_machine.cache_line import LINE_BYTES
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.regions.consecutive_elements import ElementSpan
from gossamer_schedule.safe_accesses.checked_reads import with_checked_reads


def conditional_prefetch(
    cursor: Cursor[For],
    span: ElementSpan,
    buffer: Buffer,
    distance: int,
    *,
    conditions: list[Expr],
    namer: Namer,
) -> Stmt:
    """Return the prefetch of a span, `distance` iterations ahead, under the conditions that it needs."""
    var = cursor.node.var
    later: dict[str, Expr] = {var: add(index_var(var), index(distance))}
    indices = tuple(substitute(at, later) for at in span.indices)
    count = substitute(span.count, later)
    needed = [
        *_later_iteration_condition(cursor, span, later[var]),
        *with_checked_reads(cursor, conditions, (*indices, count)),
    ]
    condition = short_circuit_conjunction(*needed)
    prefetches = _line_prefetches(cursor, ElementSpan(indices, count), buffer, namer=namer)
    return prefetches if condition is None else If(condition, (prefetches,))


def _later_iteration_condition(
    cursor: Cursor[For], span: ElementSpan, later: Expr
) -> Iterator[Expr]:
    """Yield the condition that the later iteration exists, if the number of elements depends on the loop.

    Past the last iteration that number may be anything. A number that is loaded needs no such condition:
    its bounds check ends with the array.
    """
    if has_varying_count(span, cursor):
        yield Compare("lt", later, add(cursor.node.start, cursor.node.extent))


def has_varying_count(span: ElementSpan, cursor: Cursor[For]) -> bool:
    """Return whether the number of elements depends on the loop variable other than through loads."""
    bare = rewrite(span.count, lambda node: ZERO if isinstance(node, READS) else None)
    return cursor.node.var in free_vars(bare)


def _line_prefetches(
    cursor: Cursor[For], span: ElementSpan, buffer: Buffer, *, namer: Namer
) -> Stmt:
    """Return a prefetch of each cache line of a span: a loop over the lines, if there may be several."""
    per_line = max(1, 8 * LINE_BYTES // DType.parse(buffer.dtype).bits)
    count = integer_value(span.count)
    if count is not None and count <= per_line:
        return Prefetch(buffer.name, span.indices)
    line = namer.fresh(f"{cursor.node.var}_line")
    *outer, first = span.indices
    at = add(first, mul(index_var(line), index(per_line)))
    kind: Literal["unrolled", "serial"] = "serial" if count is None else "unrolled"
    prefetched = Prefetch(buffer.name, (*outer, at))
    return For(line, ZERO, ceildiv(span.count, per_line), (prefetched,), kind=kind)
