"""Removes the undivided tensor from a function, with the axes and parameters that only it used."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from gossamer_ir.core.axis_kinds import index_handles
from gossamer_ir.core.iteration_axes import attachment_of, axis_names
from gossamer_ir.facts.fact_kinds import buffers_of_fact
from gossamer_ir.nodes import AnyBuffer, Axis, Function, Iteration, SparseBuffer, Stmt, Var
from gossamer_ir.traversal.buffer_definitions import sparse_buffers
from gossamer_ir.traversal.walk import walk
from gossamer_support.items_by_name import items_by_name


def without_tensor(function: Function, stored: Sequence[AnyBuffer]) -> Function:
    """Remove the undivided buffers, and the axes and parameters that only these used."""
    buffers = tuple(buffer for buffer in function.buffers if buffer not in stored)
    used = {name for stmt in function.body for name in _iterated_axis_names(stmt)}
    used |= {name for buffer in sparse_buffers(buffers) for name in buffer.axes}
    axes = _with_ancestors(function.axes, used)
    removed = {buffer.name for buffer in stored}
    removed |= {axis.name for axis in function.axes} - {axis.name for axis in axes}
    kept = replace(
        function,
        axes=axes,
        buffers=buffers,
        relations=tuple(r for r in function.relations if not {r.left, r.right} & removed),
        facts=tuple(fact for fact in function.facts if not set(buffers_of_fact(fact)) & removed),
    )
    unused = _names_of_params(function) - _names_of_params(kept)
    return replace(kept, params=tuple(p for p in function.params if p.name not in unused))


def _iterated_axis_names(stmt: Stmt) -> list[str]:
    return [
        name
        for node in walk(stmt)
        if isinstance(node, Iteration)
        for entry in node.axes
        for name in (*axis_names(entry), attachment_of(entry))
        if name is not None
    ]


def _with_ancestors(axes: Sequence[Axis], names: Collection[str]) -> tuple[Axis, ...]:
    by_name = items_by_name(axes)
    kept: set[str] = set()
    for name in names:
        ancestor: str | None = name
        while ancestor is not None and ancestor not in kept:
            kept.add(ancestor)
            ancestor = by_name[ancestor].parent
    return tuple(axis for axis in axes if axis.name in kept)


def _names_of_params(function: Function) -> set[str]:
    """Return the names of handles and scalars that occur in a function."""
    names = {handle for axis in function.axes for handle in index_handles(axis)}
    for buffer in function.buffers:
        names |= {buffer.handle} if buffer.handle is not None else set()
        if isinstance(buffer, SparseBuffer) and buffer.offsets is not None:
            names.add(buffer.offsets)
    parts = (*function.axes, *function.buffers, *function.facts, *function.body)
    return names | {node.name for node in walk(*parts) if isinstance(node, Var)}
