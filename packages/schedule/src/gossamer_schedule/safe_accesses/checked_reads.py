"""The bounds checks of expressions that are evaluated where their elements need not exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gossamer_ir.analysis.proofs.bounded_reads import bounds_of_read
from gossamer_ir.analysis.proofs.program_point import ProgramPoint
from gossamer_ir.core.conditions import in_range
from gossamer_ir.nodes import Buffer, Expr, For, Load, Search
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.buffer_definitions import all_buffers
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.program_points import point_in_function


def with_checked_reads(
    cursor: Cursor[For], conditions: Iterable[Expr], operands: Iterable[Expr]
) -> Iterator[Expr]:
    """Yield conditions, each after the bounds checks of its loads, and then those of some operands.

    They are evaluated in the loop at a cursor; bounds checks that are proved there are left out.
    """
    point = point_in_function(cursor.function)
    for outer in (*cursor.loops, cursor.node):
        point.assume_loop(outer)
    buffers = all_buffers(cursor.function)
    shapes = {buffer.name: buffer.shape for buffer in buffers if isinstance(buffer, Buffer)}
    for condition in conditions:
        yield from _bounds_checks(condition, point, shapes)
        point.assume(condition)
        yield condition
    for expr in operands:
        yield from _bounds_checks(expr, point, shapes)


def _bounds_checks(
    expr: Expr, point: ProgramPoint, shapes: Mapping[str, Sequence[Expr]]
) -> Iterator[Expr]:
    """Yield the bounds checks of the loads and searches in an expression that are not proved to hold."""
    for read in _reads_inner_first(expr):
        for at, extent in bounds_of_read(read, shapes[read.buffer]):
            for condition in in_range(at, extent):
                if not point.proves(condition):
                    point.assume(condition)
                    yield condition


def _reads_inner_first(expr: Expr) -> Iterator[Load | Search]:
    """Yield the loads and searches in an expression, operands before the reads that use them."""
    yield from dict.fromkeys(reversed(collect(READS, expr)))
