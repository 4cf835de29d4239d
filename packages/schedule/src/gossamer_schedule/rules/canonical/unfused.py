"""A program with its fused axes iterated one by one: the form in which rules look for patterns.

Rules fuse what pays to be fused. Searching the row of every group of nonzeros costs more than it saves
(measured for sampled products: twice the time of a loop over rows).
"""

from __future__ import annotations

from gossamer_ir.interchange.records import Decision
from gossamer_ir.nodes import FuseAxes, Module
from gossamer_schedule.primitives.coordinate.sparse_unfuse import sparse_unfuse
from gossamer_schedule.rules.recognise.row_reduction import single_iteration


def unfused(module: Module) -> tuple[Module, tuple[Decision, ...]]:
    """The module without fused axes, and what made it so."""
    found = single_iteration(module)
    decisions = []
    for entry in found[1].axes if found is not None else ():
        if found is not None and isinstance(entry, FuseAxes):
            result = sparse_unfuse(module, found[1].name, axes=entry.axes)
            module = result.module
            decisions.append(
                Decision(
                    f"loops of their own for {', '.join(entry.axes)}",
                    "searching the row of every group of nonzeros costs more than it saves",
                    (result.step,),
                    stage="coordinate",
                )
            )
    return module, tuple(decisions)
