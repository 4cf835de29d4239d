"""The iterations that replace one over an undivided tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from gossamer_ir.core.annotations import PREPROCESS
from gossamer_ir.core.axis_kinds import is_full
from gossamer_ir.core.build import index_var, integer_value
from gossamer_ir.core.iteration_axes import all_axis_names, attachment_of, axis_names, iterated_axes
from gossamer_ir.nodes import (
    Axis,
    Expr,
    Function,
    Iteration,
    IterationAxis,
    Load,
    Node,
    OverAxis,
    SparseBuffer,
    Stmt,
    Store,
)
from gossamer_ir.transform.clone_with_fresh_names import with_fresh_names
from gossamer_ir.transform.decomposition.coverage import covers
from gossamer_ir.transform.decomposition.decomposition_error import DecompositionError
from gossamer_ir.transform.decomposition.instantiated_format import InstantiatedFormat
from gossamer_ir.transform.decomposition.rows_of_parts import RowsOf, RowsOfParts
from gossamer_ir.transform.decomposition.unused_slots import (
    require_neutral_slots,
    skipping_unused_slots,
)
from gossamer_ir.transform.split_init import axes_of_init, split_init, vars_of_init
from gossamer_ir.traversal.access_types import ACCESSES
from gossamer_ir.traversal.buffer_uses import buffers_written
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.walk import collect, stmts
from gossamer_support.items_by_name import items_by_name


class DividedTensor(msgspec.Struct, frozen=True):
    """A tensor that is stored in parts: the function that uses it, its `buffers`, which share their axes, new
    names in the function, and the rows that parts are declared to initialize."""

    function: Function
    buffers: Sequence[SparseBuffer]
    namer: Namer
    rows: RowsOf

    @property
    def names(self) -> set[str]:
        """The names of the buffers."""
        return {buffer.name for buffer in self.buffers}

    @property
    def axes_of_function(self) -> dict[str, Axis]:
        """All axes of the function by name."""
        return items_by_name(self.function.axes)


def decomposed_iteration(
    iteration: Iteration, formats: Sequence[InstantiatedFormat], tensor: DividedTensor
) -> list[Stmt]:
    """Return the iterations for one over the undivided tensor: its init outside of the tensor, then one for
    each part.

    A part that is proved to visit all that is initialized comes first and initializes it, as those do that
    are declared to (`rows`).
    """
    vars = _required_vars(iteration, tensor)
    _require_no_axis_below(iteration, tensor)
    # Each part initializes its own elements, and no order among the parts is needed.
    if not _has_outer_init(iteration, tensor):
        _declare_rows(iteration, vars, tensor)
        return [_part(format, iteration, vars, tensor) for format in formats]
    axes = tensor.axes_of_function
    _require_unreduced_init(iteration, axes)
    dimensions = _initialized_dimensions(iteration, vars)
    rows = tensor.rows(dimensions[0]) if len(dimensions) == 1 else RowsOfParts()
    if _initializes_all(iteration, tensor):
        covering = next((format for format in formats if covers(format, dimensions)), None)
        rows = rows if covering is None else RowsOfParts((covering.name,), are_all=True)
    # First those that initialize, since the others add to it.
    formats = sorted(formats, key=lambda format: format.name not in rows.initializing)
    updates = replace(iteration, init=())
    result: list[Stmt] = []
    # Some rows may be in no part, or in several: they are initialized once, before all parts.
    if not rows.are_all:
        init, updates = split_init(iteration, axes, tensor.namer)
        result.append(init)
    for format in formats:
        part_iteration = iteration if format.name in rows.initializing else updates
        result.append(_part(format, part_iteration, vars, tensor))
    return result


def _declare_rows(iteration: Iteration, vars: Sequence[str], tensor: DividedTensor) -> None:
    """Declare which parts have no results in common, if these are along one dimension and are added to what
    is there, as with a factor of the output."""
    written = [
        store for store in collect(Store, *iteration.body) if store.buffer not in tensor.names
    ]
    used = free_vars(*(index for store in written for index in store.indices))
    dimensions = [dimension for dimension, name in enumerate(vars) if name in used]
    if len(dimensions) == 1 and not iteration.init:
        tensor.rows(dimensions[0])


def _has_outer_init(iteration: Iteration, tensor: DividedTensor) -> bool:
    """Return whether an iteration initializes other buffers than those of the tensor; raise an error if it
    initializes both."""
    written = buffers_written(iteration.init)
    is_outer = not written <= tensor.names
    if is_outer and written & tensor.names:
        names = ", ".join(buffer.name for buffer in tensor.buffers)
        raise DecompositionError(
            "init",
            f"Iteration '{iteration.name}' initializes {names} together with other buffers.",
        )
    return is_outer


def _initialized_dimensions(iteration: Iteration, vars: Sequence[str]) -> list[int]:
    """Return the dimensions of the tensor on which the init depends."""
    used = vars_of_init(iteration)
    return [dimension for dimension, name in enumerate(vars) if name in used]


def _initializes_all(iteration: Iteration, tensor: DividedTensor) -> bool:
    """Return whether the init runs for all coordinates of the tensor's axes, not only for stored ones."""
    axes, tensor_axes = tensor.axes_of_function, set(tensor.buffers[0].axes)
    return all(
        is_full(axes[item.axis]) and axes[item.axis].parent is None
        for item, _ in axes_of_init(iteration, axes)
        if item.axis in tensor_axes
    )


def _part(
    format: InstantiatedFormat,
    iteration: Iteration,
    vars: tuple[str, ...],
    tensor: DividedTensor,
) -> Stmt:
    """Return the iteration over a part, whose unused slots must contribute nothing."""
    require_neutral_slots(iteration, tensor.function, tensor.buffers, format)
    return _iteration_over(format, iteration, vars, tensor)


def _required_vars(iteration: Iteration, tensor: DividedTensor) -> tuple[str, ...]:
    """Return the variables over the axes of the buffers, with which all accesses must be indexed."""
    if any(isinstance(stmt, Iteration) for stmt in stmts(iteration.body)):
        raise DecompositionError(
            "nested", f"Iteration '{iteration.name}' contains another iteration."
        )
    by_axis = dict(zip(all_axis_names(iteration.axes), iteration.vars, strict=True))
    names, axes = tensor.names, tensor.buffers[0].axes
    missing = [axis for axis in axes if axis not in by_axis]
    if missing:
        raise DecompositionError(
            "axes",
            f"Iteration '{iteration.name}' uses {', '.join(sorted(names))}, but does not iterate over the "
            f"axis '{missing[0]}'.",
        )
    vars = tuple(by_axis[axis] for axis in axes)
    expected = tuple(index_var(name) for name in vars)
    for access in collect(ACCESSES, *iteration.init, *iteration.body):
        if access.buffer in names and access.indices != expected:
            raise DecompositionError(
                "access",
                f"Iteration '{iteration.name}' looks up elements of '{access.buffer}'; expected the element "
                "that is iterated.",
            )
    return vars


def _require_no_axis_below(iteration: Iteration, tensor: DividedTensor) -> None:
    """Require that no other axis is iterated below those of the tensor, which the parts do not have."""
    axes, removed = tensor.axes_of_function, tensor.buffers[0].axes
    for item in iterated_axes(iteration):
        for name in axis_names(item.axis):
            above = attachment_of(item.axis) or axes[name].parent
            if name not in removed and above in removed:
                raise DecompositionError(
                    "axes",
                    f"Iteration '{iteration.name}' iterates over '{name}' below '{above}', an axis of "
                    f"'{tensor.buffers[0].name}' that the parts do not have.",
                )


def _require_unreduced_init(iteration: Iteration, by_name: Mapping[str, Axis]) -> None:
    """Require that the init depends on spatial axes only: reduced ones are those of the undivided tensor."""
    kinds = dict(zip(iteration.vars, iteration.kinds, strict=True))
    for item, var in axes_of_init(iteration, by_name):
        if kinds[var] == "R":
            raise DecompositionError(
                "init",
                f"The init of iteration '{iteration.name}' depends on the reduced axis '{item.axis}'.",
            )


def _iteration_over(
    format: InstantiatedFormat,
    iteration: Iteration,
    vars: tuple[str, ...],
    tensor: DividedTensor,
) -> Stmt:
    """Return the iteration over a part."""
    namer = tensor.namer
    kept = _vars_of_other_axes(iteration, vars, namer)
    coordinates = dict(zip(vars, format.coordinates, strict=True))
    values = {**coordinates, **{old: index_var(new) for old, new in kept.items()}}
    pairs = zip(tensor.buffers, format.buffers, strict=True)
    renamed = {undivided.name: buffer.name for undivided, buffer in pairs}

    def retarget_body(body: tuple[Stmt, ...], dimensions: Sequence[int] | None) -> tuple[Stmt, ...]:
        over_format = rewrite_body(body, lambda node: _retarget_access(node, renamed, format.vars))
        over_elements = skipping_unused_slots(over_format, format, dimensions=dimensions)
        return with_fresh_names(over_elements, namer, values=values)

    # An init of the tensor's own elements depends on all dimensions.
    selecting = None
    if not buffers_written(iteration.init) & set(renamed):
        selecting = _initialized_dimensions(iteration, vars)

    stores = not buffers_written(iteration.body).isdisjoint(renamed)
    axes, kinds, new_vars = _part_iteration(format, iteration, vars, kept, stores=stores)
    return replace(
        iteration,
        name=namer.fresh(f"{iteration.name}_{format.name}"),
        axes=axes,
        kinds=kinds,
        vars=new_vars,
        init=retarget_body(iteration.init, selecting) if iteration.init else (),
        body=retarget_body(iteration.body, None),
    )


def _vars_of_other_axes(iteration: Iteration, vars: Sequence[str], namer: Namer) -> dict[str, str]:
    """Return new names for the variables over other axes than those of the tensor: names are unique in a
    function, and each part repeats these loops."""
    return {
        name: namer.fresh(name)
        for item in iterated_axes(iteration)
        if not set(item.vars) & set(vars)
        for name in item.vars
    }


def _part_iteration(
    format: InstantiatedFormat,
    iteration: Iteration,
    vars: Sequence[str],
    kept: Mapping[str, str],
    *,
    stores: bool,
) -> tuple[tuple[IterationAxis, ...], str, tuple[str, ...]]:
    """Return the axes, the kinds and the variables of the iteration over a part.

    The axes of the format are in the place of the first axis of the tensor. `kept` are the new names of the
    variables over other axes. If the iteration `stores` elements of the tensor, all axes of the format are
    spatial: each of its slots is written, also where the coordinates do not depend on one.
    """
    axes: list[IterationAxis] = []
    kinds: list[str] = []
    new_vars: list[str] = []
    for item in iterated_axes(iteration):
        if not set(item.vars) & set(vars):
            axes.append(item.axis)
            kinds += item.kinds
            new_vars += [kept[name] for name in item.vars]
        elif not set(new_vars) & set(format.vars):
            axes += [OverAxis(name) for name in format.buffers[0].axes]
            spatial = _spatial_coordinates(format, iteration, vars)
            kinds += "S" * len(format.vars) if stores else _kinds(format, spatial)
            new_vars += format.vars
    return tuple(axes), "".join(kinds), tuple(new_vars)


def _spatial_coordinates(
    format: InstantiatedFormat, iteration: Iteration, vars: Sequence[str]
) -> list[Expr]:
    """Return the coordinates in a part that are spatial in the iteration over the tensor."""
    kinds = dict(zip(iteration.vars, iteration.kinds, strict=True))
    pairs = zip(vars, format.coordinates, strict=True)
    return [coordinate for var, coordinate in pairs if kinds[var] == "S"]


def _kinds(format: InstantiatedFormat, spatial: Sequence[Expr]) -> list[str]:
    """Return the kind of each axis of a format: spatial if a spatial coordinate depends on it, or if it has
    one element only."""
    lengths = {axis.name: integer_value(axis.length) for axis in format.axes}
    used = {name for coordinate in spatial for name in free_vars(coordinate)}
    return [
        "S" if var in used or lengths[name] == 1 else "R"
        for var, name in zip(format.vars, format.buffers[0].axes, strict=True)
    ]


def _retarget_access(node: Node, renamed: Mapping[str, str], vars: Sequence[str]) -> Any | None:
    if isinstance(node, ACCESSES) and node.buffer in renamed:
        indices = tuple(index_var(name) for name in vars)
        return replace(node, buffer=renamed[node.buffer], indices=indices)
    return None


def conversions(
    format: InstantiatedFormat, stored: Sequence[SparseBuffer], namer: Namer
) -> list[Stmt]:
    """Return an iteration for each buffer that copies the elements of a format."""
    result: list[Stmt] = []
    for old, new in zip(stored, format.buffers, strict=True):
        vars = tuple(namer.fresh(name) for name in format.vars)
        values = dict(zip(format.vars, map(index_var, vars), strict=True))
        store = Store(
            new.name,
            tuple(values.values()),
            Load(old.name, format.coordinates, old.dtype),
        )
        body = skipping_unused_slots((store,), format)
        result.append(
            Iteration(
                name=namer.fresh(f"rewrite_{new.name}"),
                axes=tuple(OverAxis(name) for name in new.axes),
                kinds="S" * len(vars),
                vars=vars,
                body=with_fresh_names(body, namer, values=values),
                annotations=((PREPROCESS, True),),
            )
        )
    return result
