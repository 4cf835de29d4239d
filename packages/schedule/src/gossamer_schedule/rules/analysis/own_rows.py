"""Rows of an output that an index array selects, each for one row of a matrix that is stored in any order."""

from __future__ import annotations

import msgspec

from gossamer_ir.arith.offsets import load_of_index
from gossamer_ir.arith.prover import Prover
from gossamer_ir.core.axis_kinds import is_full
from gossamer_ir.core.build import ONE, add, index, index_var, mul, widen
from gossamer_ir.core.conditions import conjuncts, in_range
from gossamer_ir.facts.fact_index import fact_index
from gossamer_ir.nodes import (
    Binary,
    Distinct,
    Expr,
    Function,
    Iteration,
    Load,
    OverAxis,
    Store,
    Var,
)
from gossamer_schedule.rules.analysis.iterations import buffers_by_name, prover_in
from gossamer_support.items_by_name import items_by_name


class _ListedRow(msgspec.Struct, frozen=True):
    """An element of an array that lists rows, or blocks of rows. `row` is the row of the output; in a block,
    `place` is the variable of the row in it, and `size` the number of its rows."""

    load: Load
    row: Expr
    place: str | None
    size: Expr


def selects_own_row(
    function: Function, iteration: Iteration, store: Store, condition: Expr | None, *, row: str
) -> bool:
    """Return whether the first axis of an iteration and that of the variable `row` select a row of the output
    of their own, or a block of rows, of which another axis selects one.

    The first index of the store is an element of an array over both axes, whose values are distinct, or the
    number of a row in a block that the element selects. The row exists where the condition holds.
    """
    listed = _listed_row(store.indices[0]) if store.indices else None
    group = iteration.vars[0]
    if listed is None or listed.load.indices != (index_var(group), index_var(row)):
        return False
    buffers = buffers_by_name(function)
    axes = items_by_name(function.axes)
    output, rows = buffers.get(store.buffer), buffers.get(listed.load.buffer)
    if output is None or rows is None or not all(is_full(axes[name]) for name in rows.axes):
        return False
    lengths = {
        var: axes[item.axis].length
        for var, item in zip(iteration.vars, iteration.axes, strict=True)
        if isinstance(item, OverAxis)
    }
    if tuple(axes[name].length for name in rows.axes) != (lengths.get(group), lengths.get(row)):
        return False
    if listed.place is not None and lengths.get(listed.place) != listed.size:
        return False
    length, *_ = [axes[name].length for name in output.axes] or [ONE]
    facts = fact_index(function.facts)
    is_inside = _is_inside(listed.row, length, condition, Prover(function.facts))
    return is_inside and facts.holds(listed.load.buffer, Distinct)


def numbers_own_row(
    function: Function, iteration: Iteration, store: Store, condition: Expr | None, *, size: int
) -> bool:
    """Return whether the first and the last axis of an iteration, of which the last has `size` elements,
    number a row of the output: `first * size + last`. It exists where the condition holds."""
    output = buffers_by_name(function).get(store.buffer)
    first, *_, last = map(index_var, iteration.vars)
    number = add(mul(first, index(size)), last)
    if output is None or store.indices != (number,):
        return False
    length, *_ = [items_by_name(function.axes)[name].length for name in output.axes] or [ONE]
    return _is_inside(number, length, condition, prover_in(function, iteration))


# Other operations: nothing is concluded from them.
def _listed_row(index: Expr) -> _ListedRow | None:
    """Return the row that an index selects: `ROWS[s, r]`, or `ROWS[s, r] * size + place`."""
    match index:
        case Binary(op="add", lhs=Binary(op="mul", lhs=lhs, rhs=size), rhs=Var(name=place)):
            load = load_of_index(lhs)
            return None if load is None else _ListedRow(load, index, place, size)
    load = load_of_index(index)
    return None if load is None else _ListedRow(load, widen(load), None, ONE)


def _is_inside(row: Expr, length: Expr, condition: Expr | None, prover: Prover) -> bool:
    """Return whether a row exists where the condition holds, by its conditions and what is declared."""
    conditions = set(conjuncts(condition))
    return all(part in conditions or prover.proves(part) for part in in_range(row, length))
