"""Operands of a program that vectors can read without bounds checks."""

from __future__ import annotations

from collections.abc import Iterator

from gossamer_ir.core.axis_kinds import indices_of, is_dense_root, is_varied
from gossamer_ir.core.build import index_var, integer_value
from gossamer_ir.core.conditions import conjuncts, in_range
from gossamer_ir.nodes import Axis, Expr, Function, Iteration, Load, OverAxis, Var
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.rules.analysis.iterations import buffers_by_name, prover_in
from gossamer_support.items_by_name import items_by_name


def reads_regularly(function: Function, iteration: Iteration, *, lane: str | None) -> bool:
    """Return whether all loads are in bounds, and contiguous or gathered in the variable `lane`, if any.

    Each index must be a variable of the iteration, in its own axis or in a dense one of the same length, or a
    constant within a dense axis. Only the last index may be `lane`.
    """
    buffers, axes = buffers_by_name(function), items_by_name(function.axes)
    iterated = _iterated_axes(function, iteration)
    wanted = None if lane is None else index_var(lane)

    def is_regular(load: Load) -> bool:
        buffer = buffers.get(load.buffer)
        return (
            buffer is not None
            # Lanes in an outer index are a stride apart, which vectors cannot load.
            and wanted not in load.indices[:-1]
            and all(
                _is_within(index, axes[name], iterated)
                for name, index in zip(buffer.axes, load.indices, strict=True)
            )
        )

    return all(map(is_regular, _loads(iteration)))


def reads_in_bounds(
    function: Function, iteration: Iteration, *, condition: Expr | None = None
) -> bool:
    """Return whether all loads are in bounds where a condition holds: each index is a variable in its own
    axis, or it is proved, such as that of a column of a block, or the condition says so."""
    stated = set(conjuncts(condition))
    buffers, axes = buffers_by_name(function), items_by_name(function.axes)
    iterated, prover = _iterated_axes(function, iteration), prover_in(function, iteration)

    def is_inside(index: Expr, axis: Axis) -> bool:
        if _is_within(index, axis, iterated):
            return True
        return is_dense_root(axis) and all(
            part in stated or prover.proves(part) for part in in_range(index, axis.length)
        )

    return all(
        load.buffer in buffers
        and all(
            is_inside(index, axes[name])
            for name, index in zip(buffers[load.buffer].axes, load.indices, strict=True)
        )
        for load in _loads(iteration)
    )


def reads_whole_rows(function: Function, iteration: Iteration, *, lane: str | None) -> bool:
    """Return whether each load has the variable `lane` at most as its last index, in a dense axis as long as
    that of the lanes: all lanes of a load are then in bounds, or none is."""
    buffers, axes = buffers_by_name(function), items_by_name(function.axes)
    iterated = _iterated_axes(function, iteration)

    def is_whole(load: Load) -> bool:
        buffer = buffers.get(load.buffer)
        if buffer is None:
            return False
        *outer, last = load.indices
        is_outer = all(lane not in free_vars(index) for index in outer)
        if lane not in free_vars(last):
            return is_outer
        return is_outer and _is_within(last, axes[buffer.axes[-1]], iterated)

    return all(map(is_whole, _loads(iteration)))


def selects_by_dense_varied(function: Function, iteration: Iteration) -> bool:
    """Return whether a load indexes another axis with the coordinate of a ragged axis. The length of fibers
    is not proved, so the load needs a bounds check, which a reduction over lanes cannot have."""
    buffers = buffers_by_name(function)
    iterated = _iterated_axes(function, iteration)
    ragged = {name: axis.name for name, axis in iterated.items() if _is_dense_varied(axis)}
    return any(
        isinstance(index, Var) and ragged.get(index.name, name) != name
        for load in _loads(iteration)
        if load.buffer in buffers
        for name, index in zip(buffers[load.buffer].axes, load.indices, strict=True)
    )


def _iterated_axes(function: Function, iteration: Iteration) -> dict[str, Axis]:
    """Return the axes by the variables of the iteration; fused and attached axes are left out."""
    axes = items_by_name(function.axes)
    over = zip(iteration.vars, iteration.axes, strict=True)
    return {name: axes[item.axis] for name, item in over if isinstance(item, OverAxis)}


def _loads(iteration: Iteration) -> Iterator[Load]:
    for stmt in iteration.body:
        yield from collect(Load, stmt)


def _is_within(index: Expr, axis: Axis, iterated: dict[str, Axis]) -> bool:
    # Only a root: an index into the fibers of another axis is relative to its parent.
    number, length = integer_value(index), integer_value(axis.length)
    if number is not None and length is not None and is_dense_root(axis):
        return 0 <= number < length
    over = iterated.get(index.name) if isinstance(index, Var) else None
    if over is None:
        return False
    return over.name == axis.name or (is_dense_root(axis) and over.length == axis.length)


def _is_dense_varied(axis: Axis) -> bool:
    """Return whether an axis is dense, but its fibers vary in length."""
    return is_varied(axis) and indices_of(axis) is None
