"""`loop_partition`: cut a loop into consecutive loops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Any

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import loops_outside_init, reduction_loops
from gossamer_ir.core.build import ZERO, add, index, index_var, integer_value, widen
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import AnyBuffer, Block, Expr, For, Function, Stmt
from gossamer_ir.traversal.buffer_uses import buffers_accessed
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.substitute import substitute_body
from gossamer_schedule.cursor.clones import Clone, clones_of, forwards_of
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.enclosed_block import enclosed_block
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.cursor.requirements import LOOP_STAGES, require_serial
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.legality.iteration_buffers import buffers_by_iteration
from gossamer_schedule.legality.loop_invariance import require_unchanged
from gossamer_schedule.nests.init_checks import (
    blocks_with_init,
    require_independent_inits,
    require_init_in_copies,
    require_inits_with_added_factors,
)
from gossamer_schedule.nests.partition_ranges import (
    part_ranges,
    program_point_around,
    resolved_exprs,
)
from gossamer_schedule.safe_accesses.expression_arguments import expr_at


@primitive(stages=LOOP_STAGES)
def loop_partition(
    root: Cursor[Function],
    loop: str,
    *,
    points: tuple[int | str, ...],
    function: str | None = None,
) -> Change:
    """Cut a serial loop into loops `<loop>_0`, `<loop>_1`, ..., which run one after the other from 0.

    `points` are the cuts, as numbers of iterations in ascending order: integers, or texts such as
    "n // 8 * 8" in parameters and enclosing loop variables. A point below the preceding one gives an
    empty part; points above the number of iterations are reduced to it. The last part, the tail, runs
    over the remaining iterations. A loop, iterator, block or buffer `x` inside is named `x_0`, `x_1`, ...
    in the parts; so is a local buffer of which only the loop uses elements, each in one iteration. If the
    loop feeds a reduction, only the first part keeps the init, which runs before that
    part even if it is empty. The result's names are those of the loops.

    Raises `ScheduleError` with a code `schedule.loop_partition.*`:

    * `.points`: none, not integers, negative, or decreasing constants
    * `.text`: a point is not an expression
    * `.not_proved`: a point or the extent may change or be read out of bounds, or an init may not run as
      before

    >>> from gossamer_testkit.examples import SCALE
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(SCALE))
    for i in T.serial(n):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[vi] * 2.0
    >>> print(body_text(loop_partition(SCALE, "i", points=("n // 8 * 8",)).module))
    for i_0 in T.serial(n // 8 * 8):
        with T.block("scale_0"):
            vi_0 = T.axis.spatial(n, i_0)
            Y[vi_0] = X[vi_0] * 2.0
    for i_1 in T.serial(n - n // 8 * 8):
        with T.block("scale_1"):
            vi_1 = T.axis.spatial(n, i_1 + n // 8 * 8)
            Y[vi_1] = X[vi_1] * 2.0
    """
    cursor = find_loop(root, loop=loop)

    require_serial(cursor)
    cuts = _required_cuts(points, cursor)
    _require_unchanged_points(cursor, cuts)
    once = _required_single_inits(cursor, cuts)

    divided_buffers = buffers_by_iteration(cursor)
    # Names are unique in a function, so each part has blocks, loops and buffers of its own.
    copies = clones_of(
        (cursor.node,),
        len(cuts) + 1,
        namer_of(root.function),
        own_buffers=[buffer.name for buffer in divided_buffers],
    )
    with program_point_around(cursor) as point:
        starts, extents = part_ranges(cuts, cursor, point=point)
    # The starts become terms of the iterators, as factors do in a split.
    require_inits_with_added_factors(cursor, {loop}, starts)
    parts = _part_loops(copies, starts, extents, once=once)
    changed = _with_buffers_of_parts(cursor.replace_with(parts), divided_buffers, copies)
    return Change(changed, tuple(copy.vars[loop] for copy in copies), forwards_of(copies))


def _with_buffers_of_parts(
    cursor: Cursor[object], divided: Iterable[AnyBuffer], copies: Sequence[Clone]
) -> Cursor[Function]:
    """Return the function with a buffer for each copy instead of each of the divided ones."""
    declared = {
        buffer.name: [replace(buffer, name=copy.buffers[buffer.name]) for copy in copies]
        for buffer in divided
    }
    function = cursor.function
    buffers = [new for old in function.buffers for new in declared.get(old.name, (old,))]
    return cursor.with_function(replace(function, buffers=tuple(buffers)))


def _required_cuts(points: Sequence[int | str], cursor: Cursor[For]) -> tuple[Expr, ...]:
    """Return the cuts; refuse constants that decrease or are negative.

    Such parts would always be empty, which is a mistake of the caller. A point that depends on parameters may
    leave a part empty in some calls only.
    """
    cuts = tuple(_required_cut(point, cursor) for point in points)
    # Symbolic points are ordered at run time, by clamping.
    constants = [value for value in map(integer_value, cuts) if value is not None]
    if not cuts or min(constants, default=0) < 0 or constants != sorted(constants):
        raise _points_error(f"the points {tuple(points)} are none, negative or decreasing", cursor)
    return cuts


def _required_cut(point: int | str, cursor: Cursor[For]) -> Expr:
    if isinstance(point, int):
        if not 0 <= point < 2**63:
            raise _points_error(f"point {point} is negative or does not fit int64", cursor)
        return index(point)
    cut = expr_at(point, cursor, argument="points")
    dtype = DType.parse(dtype_of(cut))
    if not dtype.is_integer or dtype.is_vector:
        raise _points_error(f"point '{point}' is {dtype.text}, not an integer", cursor)
    return widen(cut)


def _points_error(reason: str, cursor: Cursor[For]) -> ScheduleError:
    return schedule_error(
        "loop_partition.points",
        f"Loop '{cursor.node.var}' cannot be cut: {reason}.",
        hint="Expected numbers of iterations in ascending order, as integers or texts.",
        place=cursor.place,
    )


def _require_unchanged_points(cursor: Cursor[For], cuts: Sequence[Expr]) -> None:
    """Refuse bounds and points that the loop may change: each part evaluates them again."""
    bounds = resolved_exprs((cursor.node.start, cursor.node.extent, *cuts), cursor)
    require_unchanged(cursor.node, bounds, cursor=cursor, what="a bound or point")


def _required_single_inits(cursor: Cursor[For], cuts: Sequence[Expr]) -> set[str]:
    """Return the blocks whose init does not run once per iteration of the loop: only the first part keeps
    it. Refuse the cuts if an init may not run as before."""
    require_independent_inits(cursor)
    loop, once = cursor.node.var, set()
    cut_vars = {name for cut in resolved_exprs(cuts, cursor) for name in free_vars(cut)}
    for block in blocks_with_init(cursor):
        # The init runs before the loop, and so must run before the first part only.
        if loop in loops_outside_init(enclosed_block(block)):
            once.add(block.node.name)
            continue
        reducing = reduction_loops(block.node, values_at(block))
        _require_cuts_before(block, cut_vars & reducing)
        require_init_in_copies(block, cut_vars | {loop})
    return once


def _require_cuts_before(block: Cursor[Block], reducing: Set[str]) -> None:
    """Refuse cuts that depend on reduction loops: the init runs before them, in the same parts."""
    if reducing:
        raise schedule_error(
            "loop_partition.not_proved",
            f"The init of block '{block.node.name}' runs before loop '{min(reducing)}', on which the points "
            "depend.",
            needs=f"the points do not depend on {', '.join(sorted(reducing))}",
            hint="Apply decompose_reduction before.",
            place=block.place,
        )


def _part_loops(
    copies: Sequence[Clone], starts: Sequence[Expr], extents: Sequence[Expr], *, once: Set[str]
) -> tuple[Stmt, ...]:
    """Return the copies of a loop, each over its part of the iterations."""
    parts: list[Stmt] = []
    for copy, first, extent in zip(copies, starts, extents, strict=True):
        (loop,) = copy.body
        assert isinstance(loop, For)
        # A start that loads stays in the header of the first part,
        # where it is read even if the loop has no iteration.
        if not parts and buffers_accessed(first):
            parts.append(replace(loop, start=first, extent=extent))
            continue
        shifted = {loop.var: add(index_var(loop.var), first)}
        body = substitute_body(loop.body, shifted)
        if parts:
            body = _without_inits(body, {copy.blocks[name] for name in once})
        parts.append(replace(loop, start=ZERO, extent=extent, body=body))
    return tuple(parts)


def _without_inits(body: tuple[Stmt, ...], blocks: Set[str]) -> tuple[Stmt, ...]:
    def rule(node: Any) -> Block | None:
        is_meant = isinstance(node, Block) and node.name in blocks
        return replace(node, init=()) if is_meant else None

    return rewrite_body(body, rule, leaves=False) if blocks else body
