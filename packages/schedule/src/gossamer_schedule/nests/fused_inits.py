"""Checks that the inits of blocks have the same effect after the loops around them are fused."""

from __future__ import annotations

from collections.abc import Sequence, Set

from gossamer_ir.analysis.accesses.init_nests import (
    init_dependences,
    loops_outside_init,
    reduction_loops,
    spatial_loops,
    vars_outside_init,
)
from gossamer_ir.core.build import integer_value
from gossamer_ir.nodes import Block, For
from gossamer_ir.traversal.buffer_uses import outer_writes
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import resolve
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.enclosed_block import enclosed_block
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.nests.init_checks import (
    blocks_with_init,
    buffers_read_by_init,
    loops_outside_reductions,
    require_inits_in_place,
    require_inits_with_added_factors,
    require_points_kept,
)
from gossamer_schedule.nests.init_nest import conditions_around


def require_inits_of_fused(cursors: Sequence[Cursor[For]]) -> None:
    """Refuse a fusion that may change which elements an init stores, or when.

    The fused loop is a reduction loop if any of the loops is one, and an init runs before it.
    """
    chain = [cursor.node for cursor in cursors]
    require_inits_in_place(
        cursors[0],
        lambda reducing: _loops_fused_with_reduction(chain, reducing),
    )
    feeding, factors = {loop.var for loop in chain}, [loop.extent for loop in chain[1:]]
    require_inits_with_added_factors(cursors[0], feeding, factors)
    for block in blocks_with_init(cursors[0]):
        _require_same_points(block, cursors)
        enclosed = enclosed_block(block)
        idle = [loop for loop in cursors if loop.node.var in loops_outside_init(enclosed)]
        others = [loop for loop in cursors if loop not in idle]
        if idle and others:
            # The fused loop runs for the init either as a whole or not at all.
            is_run = any(loop.node.var in init_dependences(enclosed) for loop in others)
            changed = idle if is_run else others
            _require_repeatable_init(block, changed)
            names = {loop.node.var for loop in changed}
            _require_same_conditions(block, names, is_run=is_run)


def _require_same_points(block: Cursor[Block], cursors: Sequence[Cursor[For]]) -> None:
    """Refuse a fusion that makes more loops select the points of a block, unless its init keeps its effect.

    An iterator that depended on one of the loops depends on the fused loop, and so on all of them.
    """
    chain, values = {cursor.node.var for cursor in cursors}, values_at(block)
    around = chain | {loop.var for loop in cursors[0].loops_in_block}
    is_before = bool(reduction_loops(block.node, values) & around)
    if not is_before and chain & spatial_loops(block.node, values):
        require_points_kept(block, chain)


def _loops_fused_with_reduction(chain: Sequence[For], reducing: Set[str]) -> set[str]:
    """Return the loops outside of all reduction loops that are fused with a reduction loop."""
    before = loops_outside_reductions(chain, reducing)
    return before if len(before) < len(chain) else set()


def _require_repeatable_init(block: Cursor[Block], loops: Sequence[Cursor[For]]) -> None:
    """Refuse a change in how often an init runs, unless it still runs and repeating it has no effect.

    The init runs once for each iteration of `loops` either before or after the fusion.
    """
    if overwritten := buffers_read_by_init(block) & outer_writes(block.node.init):
        raise schedule_error(
            f"{block.primitive}.not_proved",
            f"Cannot prove that the init of block '{block.node.name}' has the same effect when it runs "
            "more than once.",
            needs=f"it does not read {', '.join(sorted(overwritten))}",
            hint="Apply decompose_reduction before.",
            place=block.place,
        )
    for cursor in loops:
        if (integer_value(cursor.node.extent) or 0) < 1:
            raise schedule_error(
                f"{block.primitive}.not_proved",
                f"Cannot prove that the init of block '{block.node.name}' runs as before, as loop "
                f"'{cursor.node.var}' may have no iteration.",
                needs=f"{text_of(cursor.node.extent)} >= 1",
                hint="Apply decompose_reduction before.",
                place=cursor.place,
            )


def _require_same_conditions(block: Cursor[Block], loops: Set[str], *, is_run: bool) -> None:
    """Refuse a fusion that changes the conditions under which the init of a block runs.

    A condition that depends on a loop which does not run for the init does not apply to it. `loops` begin
    to run for the init (`is_run`), or no longer do.
    """
    before = vars_outside_init(enclosed_block(block))
    after = before - loops if is_run else before | loops
    values = values_at(block)
    for condition in conditions_around(block):
        used = free_vars(resolve(condition, values))
        if used.isdisjoint(before) != used.isdisjoint(after):
            raise schedule_error(
                f"{block.primitive}.not_proved",
                f"Cannot prove that the init of block '{block.node.name}' runs under the same conditions "
                "as before.",
                needs=text_of(condition),
                hint="Apply decompose_reduction before.",
                place=block.place,
            )
