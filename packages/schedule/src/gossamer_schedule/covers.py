"""Whether the loops around a block visit all values of its iterators."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from gossamer_ir.build import integer_value
from gossamer_ir.nodes import BlockIter
from gossamer_ir.walk import resolve
from gossamer_schedule.accesses import values_at
from gossamer_schedule.digits import is_covering
from gossamer_schedule.inits import left_out
from gossamer_schedule.linear import form_of
from gossamer_schedule.nests import Nest
from gossamer_schedule.refusals import refusal, text_of
from gossamer_schedule.sites import loops_of


def require_covered(nest: Nest, iters: Sequence[BlockIter], *, primitive: str) -> None:
    """The loops of a nest must visit all combinations of values of some iterators of its block, and those
    that feed none of them must have an iteration, where the init of the block needs them.

    Raises `.not_proved`.
    """
    site = nest.block
    outer = values_at(site)
    inside = {
        found.var: replace(found, extent=resolve(found.extent, outer)) for found in nest.loops
    }
    loops = {**loops_of(site.function), **inside}
    values = outer | {found.var: found.value for found in site.node.iters}
    idle = {found.var for found in nest.loops if (integer_value(found.extent) or 0) < 1}
    idle -= left_out(site)
    free = {found.var for found in nest.loops}
    for found in iters:
        form = form_of(found.value, outer, loops=loops)
        extent = resolve(found.domain.extent, values)
        if not is_covering(form, extent, loops=loops) or form.terms.keys() - free:
            raise refusal(
                f"{primitive}.not_proved",
                f"It is not proved that the loops around block '{site.node.name}' visit the whole "
                f"domain of '{found.var}'.",
                needs=f"{text_of(resolve(found.value, outer))} takes each value from 0 to before "
                f"{text_of(extent)}, whatever the other iterators are",
            )
        free -= form.terms.keys()
        idle -= form.terms.keys()
    if idle:
        raise refusal(
            f"{primitive}.not_proved",
            f"It is not proved that loop '{min(idle)}' around block '{site.node.name}', which selects no "
            "element, has an iteration.",
            needs=f"{text_of(loops[min(idle)].extent)} >= 1",
        )
