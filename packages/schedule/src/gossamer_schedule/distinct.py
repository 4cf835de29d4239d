"""Blocks whose points store to different elements."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_ir.nodes import For
from gossamer_schedule.disjoint import accesses_below, loops_within, verdict
from gossamer_schedule.knowledge import coordinate_facts
from gossamer_schedule.ordered import is_ordered
from gossamer_schedule.races import difference
from gossamer_schedule.refusals import refusal
from gossamer_schedule.resolve import find_loop
from gossamer_schedule.sites import Site, loops_of


def require_distinct(
    site: Site, buffer: str, *, primitive: str, nest: Iterable[For] | None = None
) -> None:
    """Each loop directly around the block at a site, or of a nest that it stands in, must store to other
    elements of a buffer in each iteration.

    Raises `.not_proved`.
    """
    loops, facts = loops_of(site.function), coordinate_facts(site.function)
    for loop in site.nest if nest is None else nest:
        at = find_loop(site.function, primitive, loop=loop.var)
        varying = loops_within((loop,))
        found = accesses_below(at)[buffer]
        state = verdict(loop.var, found, loops=loops, varying=varying, facts=facts)
        if state != "disjoint" and not is_ordered(at, buffer):
            raise refusal(
                f"{primitive}.not_proved",
                f"It is not proved that different points of block '{site.node.name}' are different "
                f"elements of '{buffer}'.",
                needs=difference(loop.var, found, varying=varying),
            )
