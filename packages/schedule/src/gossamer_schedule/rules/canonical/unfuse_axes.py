"""A program without fused axes, the form in which rules match patterns.

Rules fuse axes themselves where that pays. In other programs, the search for the row of every group of
nonzeros costs more than the fused loop saves (measured for SDDMM: twice the time of a loop over rows).
"""

from __future__ import annotations

from gossamer_ir.interchange.records import Decision
from gossamer_ir.nodes import FuseAxes, Module
from gossamer_schedule.rules.analysis.iterations import single_iteration


def unfuse_axes(module: Module) -> tuple[Module, tuple[Decision, ...]]:
    """Return the module without fused axes, and the decisions to split them."""
    single = single_iteration(module)
    decisions = []
    for entry in single[1].axes if single is not None else ():
        if single is not None and isinstance(entry, FuseAxes):
            # Imported late: most programs have no fused axes.
            from gossamer_schedule.primitives.coordinate.sparse_unfuse import sparse_unfuse

            result = sparse_unfuse(module, single[1].name, axes=entry.axes)
            module = result.module
            decisions.append(
                Decision(
                    f"separate loops for {', '.join(entry.axes)}",
                    "the search for the row of every group of nonzeros costs more than the fused loop saves",
                    (result.step,),
                    stage="coordinate",
                )
            )
    return module, tuple(decisions)
