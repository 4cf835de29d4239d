"""The axes of a program in the order in which rules match patterns: those of the sparse tree first."""

from __future__ import annotations

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Decision
from gossamer_ir.nodes import Function, Iteration, Module
from gossamer_schedule.rules.analysis.iterations import axes_of, single_iteration


def order_axes(module: Module) -> tuple[Module, tuple[Decision, ...]]:
    """Return the module in this order and the decision to reorder it. Return it unchanged, without a
    decision, if it has this order or if the order is not proved to preserve the result."""
    single = single_iteration(module)
    if single is None:
        return module, ()
    order = _order(*single)
    if order in ((), single[1].vars):
        return module, ()
    # Imported late: most programs have this order.
    from gossamer_schedule.primitives.coordinate.sparse_reorder import sparse_reorder

    # The primitive proves that the order is legal, or refuses.
    try:
        result = sparse_reorder(module, single[1].name, order=order)
    except ScheduleError:
        return module, ()
    decision = Decision(
        f"the order {', '.join(order)}",
        "patterns have the axes of the sparse matrix first, and the order of these loops does not change "
        "the result",
        (result.step,),
        stage="coordinate",
    )
    return result.module, (decision,)


def _order(function: Function, iteration: Iteration) -> tuple[str, ...]:
    """Return the variables of axes that have a parent or a child, then the others."""
    axes = axes_of(function, iteration)
    parents = {axis.parent for axis in axes}
    return tuple(
        name
        for is_first in (True, False)
        for name, axis in zip(iteration.vars, axes, strict=False)
        if (axis.parent is not None or axis.name in parents) is is_first
    )
