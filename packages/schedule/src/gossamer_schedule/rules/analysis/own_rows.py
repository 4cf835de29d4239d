"""Rows of an output that an index array selects, each for one row of a matrix that is stored in any order."""

from __future__ import annotations

from gossamer_ir.arith.prover import Prover
from gossamer_ir.core.axis_kinds import is_full
from gossamer_ir.core.build import ONE, index_var, widen
from gossamer_ir.core.conditions import conjuncts, in_range
from gossamer_ir.nodes import (
    Cast,
    Distinct,
    Expr,
    Function,
    Iteration,
    Load,
    Store,
)
from gossamer_ir.traversal.fact_index import fact_index
from gossamer_schedule.rules.analysis.iterations import buffers_by_name


def selects_own_row(
    function: Function, iteration: Iteration, store: Store, guard: Expr | None
) -> bool:
    """Return whether the first and the third axis of an iteration select a row of the output of their own.

    The first index of the store is an element of an array over both axes, whose values are distinct. The row
    exists where the guard holds.
    """
    if not store.indices:
        return False
    index = store.indices[0]
    load = index.value if isinstance(index, Cast) else index
    group, _, row, *_ = iteration.vars
    if not isinstance(load, Load) or load.indices != (index_var(group), index_var(row)):
        return False
    buffers = buffers_by_name(function)
    axes = {axis.name: axis for axis in function.axes}
    output, rows = buffers.get(store.buffer), buffers.get(load.buffer)
    if output is None or rows is None or not all(is_full(axes[name]) for name in rows.axes):
        return False
    extents = tuple(axes[name].length for name in rows.axes)
    iterated = tuple(axes[_axis_of(iteration, place)].length for place in (0, 2))
    length, *_ = [axes[name].length for name in output.axes] or [ONE]
    facts = fact_index(function.facts)
    is_inside = _is_inside(widen(load), length, guard, Prover(function.facts))
    return extents == iterated and is_inside and facts.holds(load.buffer, Distinct)


def _is_inside(row: Expr, length: Expr, guard: Expr | None, prover: Prover) -> bool:
    """Return whether a row exists where the guard holds, by its conditions and what is declared."""
    known = set(conjuncts(guard))
    return all(part in known or prover.proves(part) for part in in_range(row, length))


def _axis_of(iteration: Iteration, place: int) -> str:
    return str(getattr(iteration.axes[place], "axis", ""))
