"""The iterations over the parts of a tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from gossamer_ir.core.annotations import PREPROCESS
from gossamer_ir.core.build import index_var, integer_value
from gossamer_ir.core.iteration_axes import (
    all_axis_names,
    iterated_axes,
)
from gossamer_ir.nodes import (
    Axis,
    Expr,
    Iteration,
    IterationAxis,
    Load,
    OverAxis,
    SparseBuffer,
    Stmt,
    Store,
)
from gossamer_ir.transform.clone_with_fresh_names import with_fresh_names
from gossamer_ir.transform.decomposition.decomposition_error import DecompositionError
from gossamer_ir.transform.decomposition.format_part import FormatPart
from gossamer_ir.transform.decomposition.slots import require_neutral_slots, skipping_unused_slots
from gossamer_ir.traversal.effects import ACCESSES, buffers_written
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.references import free_vars
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.walk import collect, statements


def decomposed_iteration(
    iteration: Iteration,
    stored: Sequence[SparseBuffer],
    parts: Sequence[FormatPart],
    axes: Mapping[str, Axis],
    namer: Namer,
) -> list[Stmt]:
    """Return the iterations for one over the undivided tensor: its init outside of the tensor, then one for
    each part."""
    names = [buffer.name for buffer in stored]
    variables = _required_variables(iteration, stored)
    outer_init = bool(iteration.init) and not buffers_written(iteration.init) <= set(names)
    if outer_init and buffers_written(iteration.init) & set(names):
        raise DecompositionError(
            "init",
            f"Iteration '{iteration.name}' initializes {', '.join(names)} together with other buffers.",
        )
    result: list[Stmt] = []
    if outer_init:
        result.append(_init_iteration(iteration, axes, namer))
        iteration = replace(iteration, init=())
    for part in parts:
        require_neutral_slots(iteration, stored, part)
        result.append(_part_iteration(iteration, stored, variables, part, namer))
    return result


def _required_variables(iteration: Iteration, stored: Sequence[SparseBuffer]) -> tuple[str, ...]:
    """Return the variables over the axes of the buffers, with which all accesses must be indexed."""
    if any(isinstance(stmt, Iteration) for stmt in statements(iteration.body)):
        raise DecompositionError(
            "nested", f"Iteration '{iteration.name}' contains another iteration."
        )
    by_axis = dict(zip(all_axis_names(iteration.axes), iteration.vars, strict=True))
    names = {buffer.name for buffer in stored}
    missing = [axis for axis in stored[0].axes if axis not in by_axis]
    if missing:
        raise DecompositionError(
            "axes",
            f"Iteration '{iteration.name}' uses {', '.join(sorted(names))}, but does not iterate over the "
            f"axis '{missing[0]}'.",
        )
    variables = tuple(by_axis[axis] for axis in stored[0].axes)
    expected = tuple(index_var(name) for name in variables)
    for access in collect(ACCESSES, *iteration.init, *iteration.body):
        if access.buffer in names and access.indices != expected:
            raise DecompositionError(
                "access",
                f"Iteration '{iteration.name}' looks up elements of '{access.buffer}'; expected the element "
                "that is iterated.",
            )
    return variables


def _init_iteration(iteration: Iteration, axes: Mapping[str, Axis], namer: Namer) -> Stmt:
    """Return the init as an iteration over the spatial axes."""
    by_axis = dict(zip(all_axis_names(iteration.axes), iteration.vars, strict=True))
    kinds = dict(zip(iteration.vars, iteration.kinds, strict=True))
    kept = [name for name, variable in by_axis.items() if kinds[variable] == "S"]
    for name in kept:
        if axes[name].parent is not None and axes[name].parent not in kept:
            raise DecompositionError(
                "init",
                f"The init of iteration '{iteration.name}' depends on axis '{name}', whose parent is "
                "reduced.",
            )
    variables = {by_axis[name]: namer.fresh(by_axis[name]) for name in kept}
    values = {old: index_var(new) for old, new in variables.items()}
    return Iteration(
        name=namer.fresh(f"{iteration.name}_init"),
        axes=tuple(OverAxis(name) for name in kept),
        kinds="S" * len(kept),
        vars=tuple(variables.values()),
        body=with_fresh_names(iteration.init, namer, values=values),
        annotations=iteration.annotations,
    )


def _part_iteration(
    iteration: Iteration,
    stored: Sequence[SparseBuffer],
    variables: tuple[str, ...],
    part: FormatPart,
    namer: Namer,
) -> Stmt:
    """Return the iteration over a part."""
    kinds = dict(zip(iteration.vars, iteration.kinds, strict=True))
    axes: list[IterationAxis] = []
    new_kinds: list[str] = []
    new_vars: list[str] = []
    values: dict[str, Expr] = dict(zip(variables, part.coordinates, strict=True))
    for item in iterated_axes(iteration):
        if not set(item.vars) & set(variables):
            axes.append(item.axis)
            new_kinds += item.kinds
            for name in item.vars:
                fresh = namer.fresh(name)
                new_vars.append(fresh)
                values[name] = index_var(fresh)
        elif not set(new_vars) & set(part.variables):
            axes += [OverAxis(name) for name in part.buffers[0].axes]
            new_kinds += _part_kinds(part, variables, kinds)
            new_vars += part.variables
    renamed = dict(
        zip((buffer.name for buffer in stored), (b.name for b in part.buffers), strict=True)
    )

    def moved(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        stored_in_part = rewrite_body(body, lambda node: _moved(node, renamed, part.variables))
        stored_in_part = skipping_unused_slots(stored_in_part, part)
        return with_fresh_names(stored_in_part, namer, values=values)

    return replace(
        iteration,
        name=namer.fresh(f"{iteration.name}_{part.name}"),
        axes=tuple(axes),
        kinds="".join(new_kinds),
        vars=tuple(new_vars),
        init=moved(iteration.init) if iteration.init else (),
        body=moved(iteration.body),
    )


def _part_kinds(part: FormatPart, variables: Sequence[str], kinds: Mapping[str, str]) -> list[str]:
    """Return the kind of each axis of a part: spatial if a spatial coordinate depends on it, or if it has one
    element only."""
    lengths = {axis.name: integer_value(axis.length) for axis in part.axes}
    spatial: set[str] = set()
    for variable, coordinate in zip(variables, part.coordinates, strict=True):
        if kinds[variable] == "S":
            spatial |= free_vars(coordinate)
    return [
        "S" if variable in spatial or lengths[name] == 1 else "R"
        for variable, name in zip(part.variables, part.buffers[0].axes, strict=True)
    ]


def _moved(node: Any, renamed: Mapping[str, str], variables: Sequence[str]) -> Any | None:
    if isinstance(node, ACCESSES) and node.buffer in renamed:
        indices = tuple(index_var(name) for name in variables)
        return replace(node, buffer=renamed[node.buffer], indices=indices)
    return None


def conversions(part: FormatPart, stored: Sequence[SparseBuffer], namer: Namer) -> list[Stmt]:
    """Return an iteration for each buffer that copies the elements of a part."""
    result: list[Stmt] = []
    for old, new in zip(stored, part.buffers, strict=True):
        variables = tuple(namer.fresh(name) for name in part.variables)
        values = dict(zip(part.variables, map(index_var, variables), strict=True))
        store = Store(
            new.name,
            tuple(values.values()),
            Load(old.name, part.coordinates, old.dtype),
        )
        body = skipping_unused_slots((store,), part)
        result.append(
            Iteration(
                name=namer.fresh(f"rewrite_{new.name}"),
                axes=tuple(OverAxis(name) for name in new.axes),
                kinds="S" * len(variables),
                vars=variables,
                body=with_fresh_names(body, namer, values=values),
                annotations=((PREPROCESS, True),),
            )
        )
    return result
