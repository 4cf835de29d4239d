"""The starts and the numbers of iterations of the parts into which a loop is cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise, takewhile

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import reduction_loops
from gossamer_ir.analysis.proofs.program_point import ProgramPoint
from gossamer_ir.arith.floor_multiples import dividend_of_floor
from gossamer_ir.arith.simplify import simplify
from gossamer_ir.core.build import ZERO, add, sub
from gossamer_ir.nodes import Binary, Expr, For
from gossamer_ir.traversal.substitute import resolve
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.nests.init_checks import blocks_with_init


@contextmanager
def program_point_around(cursor: Cursor[object]) -> Iterator[ProgramPoint]:
    """Yield the conditions before the loop, both where it runs for a block and where it runs for an init.

    Inits run before the reduction loops, so nothing is assumed of these and of loops inside them.
    """
    point, values = ProgramPoint(cursor.function), values_at(cursor)
    idle = {
        name
        for block in blocks_with_init(cursor)
        for name in reduction_loops(block.node, values_at(block))
    }
    with ExitStack() as stack:
        for loop in takewhile(lambda loop: loop.var not in idle, cursor.loops):
            start, extent = resolve(loop.start, values), resolve(loop.extent, values)
            stack.enter_context(point.inside(replace(loop, start=start, extent=extent)))
        yield point


def part_ranges(
    cuts: Sequence[Expr], cursor: Cursor[For], *, point: ProgramPoint
) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """Return the start and the number of iterations of each part.

    No sum or difference overflows: all lie between the start of the loop and its end.
    """
    loop = cursor.node
    ends = (*_clamped_cuts(cuts, cursor, point=point), loop.extent)
    starts = (loop.start, *(simplify(add(loop.start, end)) for end in ends[:-1]))
    # Not clamped below by 0: a loop with a negative extent is empty as well.
    first = _cap_at_extent(cuts[0], cursor, point=point)
    return starts, (first, *(simplify(sub(end, begin)) for begin, end in pairwise(ends)))


def _clamped_cuts(cuts: Sequence[Expr], cursor: Cursor[For], *, point: ProgramPoint) -> list[Expr]:
    """Return the number of iterations before each cut, at least that before the preceding cut and at most
    the extent."""
    clamped: list[Expr] = []
    for number, cut in enumerate(cuts):
        is_ordered = number == 0 or _is_at_most(cuts[number - 1], cut, cursor, point=point)
        # Cuts that are known to be in order need no `max`.
        previous, capped = (
            ZERO if is_ordered else clamped[-1],
            _cap_at_extent(cut, cursor, point=point),
        )
        is_bounded = is_ordered and _is_at_most(ZERO, capped, cursor, point=point)
        clamped.append(capped if is_bounded else simplify(Binary("max", capped, previous)))
    return clamped


def _cap_at_extent(cut: Expr, cursor: Cursor[For], *, point: ProgramPoint) -> Expr:
    """Return the smaller of a point and the extent, without `min` where the point is known to be smaller."""
    extent = cursor.node.extent
    if dividend_of_floor(cut) == extent or _is_at_most(cut, extent, cursor, point=point):
        return cut
    smaller: Expr = simplify(Binary("min", cut, extent))
    return smaller


def _is_at_most(
    lesser: Expr, greater: Expr, cursor: Cursor[object], *, point: ProgramPoint
) -> bool:
    """Return whether lesser <= greater is proved."""
    if lesser == greater:
        return True
    return point.is_at_most(*resolved_exprs((lesser, greater), cursor))


def resolved_exprs(exprs: Sequence[Expr], cursor: Cursor[object]) -> tuple[Expr, ...]:
    """Return expressions in terms of parameters and loop variables."""
    values = values_at(cursor)
    return tuple(resolve(expr, values) for expr in exprs)
