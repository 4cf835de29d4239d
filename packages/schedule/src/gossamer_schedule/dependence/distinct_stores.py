"""Blocks whose points store to different elements."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_ir.analysis.loops import loops_within
from gossamer_ir.nodes import For
from gossamer_schedule.cursor.resolve import find_loop
from gossamer_schedule.cursor.site import Site
from gossamer_schedule.dependence.races import accesses_below, difference, is_unshared
from gossamer_schedule.errors import refusal


def require_distinct(
    site: Site, buffer: str, *, primitive: str, nest: Iterable[For] | None = None
) -> None:
    """Each loop directly around the block at a site, or of a nest that it stands in, must store to other
    elements of a buffer in each iteration.

    Raises `.not_proved`.
    """
    for loop in site.nest if nest is None else nest:
        at = find_loop(site.function, primitive, loop=loop.var)
        if not is_unshared(at, buffer):
            raise refusal(
                f"{primitive}.not_proved",
                f"It is not proved that different points of block '{site.node.name}' are different "
                f"elements of '{buffer}'.",
                needs=difference(
                    loop.var, accesses_below(at)[buffer], varying=loops_within((loop,))
                ),
            )
