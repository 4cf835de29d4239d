"""`fuse`: loops of one nest become one loop."""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import pairwise

from msgspec.structs import replace

from gossamer_ir.analysis.init_nests import reduction_loops, spatial_loops
from gossamer_ir.core.build import ZERO, floordiv, index_var, integer_value, product
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Binary, Compare, Expr, For, Module
from gossamer_ir.traversal.effects import outer_writes
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.walk import free_vars, resolve, substitute_body
from gossamer_schedule.bounds.prover import point_in
from gossamer_schedule.cursor.cursor import Cursor
from gossamer_schedule.cursor.resolve import (
    LOOP_STAGES,
    find_function,
    find_loop,
    require_serial,
    require_stage,
)
from gossamer_schedule.dependence.access import values_at
from gossamer_schedule.dependence.unchanged import require_unchanged_bounds
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.nests.init_nest import (
    conditions_around,
    left_out,
    needed_by_init,
    unselecting,
)
from gossamer_schedule.nests.init_places import (
    blocks_with_init,
    outside,
    read_by_init,
    require_inits_beside,
    require_inits_in_place,
    require_points_kept,
)
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step

LARGEST_COUNT = 2**63 - 1
"""Iterations that a loop has at most, so that none of them is beyond the largest integer."""


@primitive
def fuse(module: Module, *loops: str, function: str | None = None) -> Result:
    """Fuses serial loops that start at 0, given from the outermost in, each being all that the one
    before holds, into one loop `<outer>_<inner>`.

    Raises `ScheduleError`: `schedule.fuse.loops` (fewer than two), `.not_nested`, `.dependence` (the
    extent of one depends on another), `.not_proved` (an init may be lost where a loop is empty, or run
    less often, an extent may change, or be negative), `.start`, `.kind`, `.no_loop`, `.no_function`,
    `.stage`.

    >>> from gossamer_testkit.examples import MATMUL
    >>> from gossamer_testkit.show import body_text
    >>> from gossamer_schedule.primitives.loops.reorder import reorder
    >>> before = reorder(MATMUL, "l", "j").module
    >>> print(body_text(before))
    for i in T.serial(m):
        for l in T.serial(k):
            for j in T.serial(n):
                with T.block("matmul"):
                    vi, vj, vl = T.axis.remap("SRS", [i, j, l])
                    with T.init():
                        C[vi, vl] = 0.0
                    C[vi, vl] = C[vi, vl] + A[vi, vj] * B[vj, vl]
    >>> print(body_text(fuse(before, "i", "l").module))
    for i_l in T.serial(m * k):
        for j in T.serial(n):
            with T.block("matmul"):
                vi = T.axis.spatial(m, i_l // k)
                vj = T.axis.reduce(n, j)
                vl = T.axis.spatial(k, i_l % k)
                with T.init():
                    C[vi, vl] = 0.0
                C[vi, vl] = C[vi, vl] + A[vi, vj] * B[vj, vl]
    """
    require_stage(module, "fuse", stages=LOOP_STAGES)
    root = find_function(module, "fuse", function=function)
    found = [find_loop(root, loop=name) for name in loops]

    _require_chain(found)
    for cursor in found:
        require_serial(cursor)
        _require_plain(cursor)
    _require_independent(found)
    _require_counts(found)
    _require_same_inits(found)

    name = namer_of(root.function).fresh("_".join(loops))
    chain: list[For] = [cursor.node for cursor in found]
    body = substitute_body(chain[-1].body, _values(chain, name))
    notes = {key: value for loop in reversed(chain) for key, value in loop.annotations}
    fused = replace(
        chain[0],
        var=name,
        extent=product(found.extent for found in chain),
        body=body,
        annotations=tuple(notes.items()),
    )

    rewritten = found[0].replaced_by((fused,)).module

    forwards = dict.fromkeys(loops, (name,))
    return Result(rewritten, (name,), Step("fuse", step(loops=loops, function=function)), forwards)


def _require_chain(found: Sequence[Cursor]) -> None:
    if len(found) < 2:
        raise schedule_error("fuse.loops", "Fewer than two loops are to be fused.")
    for outer, inner in pairwise(found):
        if outer.node.body != (inner.node,):
            raise schedule_error(
                "fuse.not_nested",
                f"Loop '{outer.node.var}' does not hold loop '{inner.node.var}' and nothing else.",
                place=outer.place,
            )


def _require_plain(cursor: Cursor) -> None:
    if integer_value(cursor.node.start) != 0:
        raise schedule_error(
            "fuse.start",
            f"Loop '{cursor.node.var}' does not start at 0.",
            place=cursor.place,
        )


def _require_independent(found: Sequence[Cursor]) -> None:
    outer = {cursor.node.var for cursor in found}
    for cursor in found:
        if used := free_vars(cursor.node.extent) & outer:
            raise schedule_error(
                "fuse.dependence",
                f"The extent of loop '{cursor.node.var}' depends on loop '{min(used)}'.",
                hint="sparse_fuse numbers the elements of such axes at the coordinate stage.",
                place=cursor.place,
            )
    chain = [cursor.node for cursor in found]
    require_unchanged_bounds(chain, at=found[0])


def _require_counts(found: Sequence[Cursor]) -> None:
    """Two negative extents, of loops that do not run, would make a positive product, and a product that
    wraps around any."""
    point = point_in(found[0].function)
    for outer in found[0].loops:
        point.assume_loop(outer)
    extents = [cursor.node.extent for cursor in found]
    fits = point.magnitudes.of_product(extents) <= LARGEST_COUNT
    if not fits or not point.is_exact(*extents):
        raise schedule_error(
            "fuse.not_proved",
            "It is not proved that the number of iterations of the fused loop fits int64.",
            needs=f"{text_of(product(extents))} is at most {LARGEST_COUNT}",
            hint="Sizes of one array have a product that fits, as do sizes and small numbers.",
            place=found[0].place,
        )
    unknown = [
        cursor for cursor in found if not point.proves(Compare("ge", cursor.node.extent, ZERO))
    ]
    if len(unknown) > 1:
        raise schedule_error(
            "fuse.not_proved",
            "It is not proved that the fused loop runs as often as the loops do.",
            needs=f"{text_of(unknown[-1].node.extent)} >= 0",
            place=unknown[-1].place,
        )


def _require_same_inits(found: Sequence[Cursor]) -> None:
    """The fused loop is one of a reduction if any of the loops is."""
    chain = [cursor.node for cursor in found]
    require_inits_in_place(
        found[0],
        lambda reducing: _joining(chain, reducing),
    )
    feeding, factors = {loop.var for loop in chain}, [loop.extent for loop in chain[1:]]
    require_inits_beside(found[0], feeding, factors)
    for cursor in blocks_with_init(found[0]):
        _require_same_points(cursor, found)
        idle = [loop for loop in found if loop.node.var in left_out(cursor)]
        others = [loop for loop in found if loop not in idle]
        if idle and others:
            is_run = any(loop.node.var in needed_by_init(cursor) for loop in others)
            changed = idle if is_run else others
            _require_run(cursor, changed)
            names = {loop.node.var for loop in changed}
            _require_same_conditions(cursor, names, is_run=is_run)


def _require_same_points(block: Cursor, found: Sequence[Cursor]) -> None:
    """All of the loops come to feed the points of a block, if any of them does."""
    chain, values = {cursor.node.var for cursor in found}, values_at(block)
    around = chain | {loop.var for loop in found[0].scope}
    is_before = bool(reduction_loops(block.node, values) & around)
    if not is_before and chain & spatial_loops(block.node, values):
        require_points_kept(block, chain)


def _joining(chain: Sequence[For], reducing: Set[str]) -> set[str]:
    """The loops outside of a reduction that become one with loops that feed it."""
    before = outside(chain, reducing)
    return before if len(before) < len(chain) else set()


def _require_run(block: Cursor, loops: Sequence[Cursor]) -> None:
    """Refuses an init that comes to run once for each iteration of loops, or no longer does, unless they
    have iterations and it may run any number of times."""
    if clash := read_by_init(block) & outer_writes(block.node.init):
        raise schedule_error(
            "fuse.not_proved",
            f"It is not proved that the init of block '{block.node.name}' may run any number of times.",
            needs=f"it does not read {', '.join(sorted(clash))}",
            hint="Apply decompose_reduction before.",
            place=block.place,
        )
    for cursor in loops:
        if (integer_value(cursor.node.extent) or 0) < 1:
            raise schedule_error(
                "fuse.not_proved",
                f"It is not proved that the init of block '{block.node.name}' runs as before, as loop "
                f"'{cursor.node.var}' may have no iteration.",
                needs=f"{text_of(cursor.node.extent)} >= 1",
                hint="Apply decompose_reduction before.",
                place=cursor.place,
            )


def _require_same_conditions(block: Cursor, loops: Set[str], *, is_run: bool) -> None:
    """An init runs under the conditions that are about the loops which are run for it, to which some loops
    come (`is_run`), or of which they go."""
    before = unselecting(block)
    after = before - loops if is_run else before | loops
    values = values_at(block)
    for condition in conditions_around(block):
        used = free_vars(resolve(condition, values))
        if used.isdisjoint(before) != used.isdisjoint(after):
            raise schedule_error(
                "fuse.not_proved",
                f"It is not proved that the init of block '{block.node.name}' runs under the same conditions "
                "as before.",
                needs=text_of(condition),
                hint="Apply decompose_reduction before.",
                place=block.place,
            )


def _values(chain: Sequence[For], name: str) -> dict[str, Expr]:
    """What the old variables are: digits of the new one."""
    values: dict[str, Expr] = {}
    left: Expr = index_var(name)
    for loop in reversed(chain[1:]):
        is_unit = integer_value(loop.extent) == 1
        values[loop.var] = ZERO if is_unit else Binary("floormod", left, loop.extent)
        left = floordiv(left, loop.extent)
    return values | {chain[0].var: left}
