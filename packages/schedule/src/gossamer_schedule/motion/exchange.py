"""Whether the iterations of a nest may run in another order, at every stage."""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import combinations

from gossamer_ir.analysis.init_nests import reduction_loops
from gossamer_ir.analysis.loops import loops_within
from gossamer_ir.dependence.disjointness import verdict, written_accesses
from gossamer_ir.nodes import For
from gossamer_schedule.cursor.cursor import Cursor
from gossamer_schedule.dependence.access import mentioned, values_at
from gossamer_schedule.dependence.unchanged import require_unchanged_bounds
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.nests.init_places import blocks_with_init, outside, require_inits_in_place
from gossamer_schedule.reductions.reassociation import combiner_of


def require_exchangeable(top: Cursor, chain: Sequence[For], moved: Sequence[For]) -> set[str]:
    """Refuses to put a nest of loops, the first of which is at the cursor, into another order unless its
    result stays; returns the buffers whose elements are combined in another order.

    Two iterations change places only if they differ in two loops that do. They may, where one of these
    loops selects the element, or where all that the nest does with the buffer is to combine its elements
    by one reducer.

    Raises `.not_proved`.
    """
    require_inits_in_place(
        top,
        lambda reducing: outside(chain, reducing) ^ outside(moved, reducing),
    )
    require_unchanged_bounds(chain, at=top)
    ordered = _ordered(top, chain, _turned(chain, moved))
    for buffer, names in ordered.items():
        if not _is_combined(top, chain, buffer, names):
            words = " and in ".join(sorted(names))
            raise schedule_error(
                f"{top.primitive}.not_proved",
                f"It is not proved that the iterations of the loops {', '.join(sorted(names))} may "
                "be exchanged.",
                needs=f"iterations that differ in {words} touch different elements of '{buffer}'",
            )
    return set(ordered)


def _turned(chain: Sequence[For], moved: Sequence[For]) -> set[tuple[str, str]]:
    """The pairs of loops that change places."""
    position = {loop.var: at for at, loop in enumerate(moved)}
    pairs = combinations((loop.var for loop in chain), 2)
    return {(outer, inner) for outer, inner in pairs if position[outer] > position[inner]}


def _ordered(
    top: Cursor, chain: Sequence[For], turned: Set[tuple[str, str]]
) -> dict[str, frozenset[str]]:
    """The buffers of which iterations that change places may touch one element, with the loops in which
    these differ."""
    varying = loops_within((top.node,))
    touched = written_accesses(chain[-1].body, values=values_at(top), function=top.function)
    ordered: dict[str, frozenset[str]] = {}
    for buffer, found in touched.items():
        shared = {
            loop.var
            for loop in chain
            if verdict(loop.var, found, varying=varying, function=top.function) != "disjoint"
        }
        names = frozenset(name for pair in turned if shared.issuperset(pair) for name in pair)
        if names:
            ordered[buffer] = names
    return ordered


def _is_combined(top: Cursor, chain: Sequence[For], buffer: str, names: Set[str]) -> bool:
    """Whether the nest does nothing but combine elements of a buffer, and initialises them, if at all,
    before all iterations of the loops in which those differ that change places."""
    if combiner_of(chain[-1].body, buffer) is None:
        return False
    return all(
        names <= reduction_loops(cursor.node, values_at(cursor))
        for cursor in blocks_with_init(top)
        if buffer in mentioned(cursor.node.init)
    )
