"""Loop interchange: whether the iterations of a nest may run in another order, at every stage."""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import combinations

from gossamer_ir.analysis.accesses.init_nests import reduction_loops
from gossamer_ir.analysis.bounds.loops_by_name import loops_within
from gossamer_ir.dependence.disjointness import disjointness, written_accesses
from gossamer_ir.nodes import For, Stmt
from gossamer_ir.traversal.buffer_uses import buffers_accessed
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.legality.loop_invariance import require_unchanged_bounds
from gossamer_schedule.nests.init_checks import (
    blocks_with_init,
    loops_outside_reductions,
    require_inits_in_place,
)
from gossamer_schedule.reductions.reassociation import combiner_of


def required_exchange(top: Cursor[For], chain: Sequence[For], moved: Sequence[For]) -> set[str]:
    """Refuse an order of the loops of a nest that may change its result; return the buffers whose elements
    are combined in another order.

    The outermost loop of `chain` is at the cursor; `moved` has the same loops in their new order. Two
    iterations are exchanged only if they differ in two loops that are. This is legal if one of these loops
    selects the element, or if the nest only combines elements of the buffer by one reducer.

    Raises `.not_proved`.
    """
    require_inits_in_place(
        top,
        lambda reducing: (
            loops_outside_reductions(chain, reducing) ^ loops_outside_reductions(moved, reducing)
        ),
    )
    # Inner bounds are evaluated in another order, possibly before a write that they depended on.
    require_unchanged_bounds(chain, cursor=top)
    dependent = _dependent_buffers(top, chain, _exchanged_pairs(chain, moved))
    for buffer, names in dependent.items():
        if not _is_combined(top, chain, buffer, names):
            words = " and in ".join(sorted(names))
            raise schedule_error(
                f"{top.primitive}.not_proved",
                f"Cannot prove that the iterations of the loops {', '.join(sorted(names))} may "
                "be exchanged.",
                needs=f"iterations that differ in {words} access different elements of '{buffer}'",
            )
    return set(dependent)


def _exchanged_pairs(chain: Sequence[For], moved: Sequence[For]) -> set[tuple[str, str]]:
    """Return the pairs of loops, outer and inner, that are exchanged."""
    position = {loop.var: number for number, loop in enumerate(moved)}
    pairs = combinations((loop.var for loop in chain), 2)
    return {(outer, inner) for outer, inner in pairs if position[outer] > position[inner]}


def _dependent_buffers(
    top: Cursor[Stmt], chain: Sequence[For], exchanged: Set[tuple[str, str]]
) -> dict[str, frozenset[str]]:
    """Return the buffers of which exchanged iterations may access the same element, each with the loops in
    which these iterations differ."""
    varying = loops_within((top.node,))
    written = written_accesses(chain[-1].body, values=values_at(top), function=top.function)
    dependent: dict[str, frozenset[str]] = {}
    for buffer, accesses in written.items():
        shared = {
            loop.var
            for loop in chain
            if disjointness(loop.var, accesses, varying=varying, function=top.function)
            != "disjoint"
        }
        # Iterations that differ in one loop only keep their order, so both loops must share the element.
        names = frozenset(name for pair in exchanged if shared.issuperset(pair) for name in pair)
        if names:
            dependent[buffer] = names
    return dependent


def _is_combined(
    top: Cursor[object], chain: Sequence[For], buffer_name: str, names: Set[str]
) -> bool:
    """Return whether the nest only combines elements of a buffer, and initializes them, if at all, before
    all iterations of the loops `names`."""
    # Reading a partial sum makes the order of the additions visible.
    if combiner_of(chain[-1].body, buffer_name) is None:
        return False
    return all(
        names <= reduction_loops(cursor.node, values_at(cursor))
        for cursor in blocks_with_init(top)
        if buffer_name in buffers_accessed(*cursor.node.init)
    )
