"""The declarations of a format description in the names of a function that stores a tensor in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from gossamer_ir.analysis.axes.logical_elements import logical_shape, map_results, map_vars
from gossamer_ir.nodes import (
    Axis,
    Buffer,
    DenseFixed,
    Expr,
    Fact,
    FormatDescription,
    Node,
    Param,
    SparseBuffer,
    Var,
)
from gossamer_ir.transform.decomposition.decomposition_error import DecompositionError
from gossamer_ir.transform.decomposition.part_parameter import part_parameter
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.rename import with_names
from gossamer_ir.traversal.rewrite import rewrite


class NamedFormat(NamedTuple):
    """A format, and the name of the part that is stored in it."""

    name: str
    description: FormatDescription


class InstantiatedFormat(NamedTuple):
    """A format with the declarations of its description in the names of a function."""

    name: str
    """The name of the part."""
    description: FormatDescription
    shape: tuple[Expr, ...]
    """The shape of the tensor."""
    params: tuple[Param, ...]
    axes: tuple[Axis, ...]
    buffers: tuple[SparseBuffer, ...]
    """The values, one buffer for each tensor that shares the format."""
    index_arrays: tuple[SparseBuffer, ...]
    """The arrays that the map reads, over axes of their own."""
    facts: tuple[Fact, ...]
    """Facts about the index arrays."""
    vars: tuple[str, ...]
    """The variables along the axes of the buffers, in their order."""
    coordinates: tuple[Expr, ...]
    """The logical coordinates, in terms of the variables."""


def instantiate_format(
    format: NamedFormat,
    *,
    shape: Sequence[Expr],
    stored: Sequence[SparseBuffer],
    namer: Namer,
) -> InstantiatedFormat:
    """Return the declarations for `stored` buffers of a shape, whose names end with that of the part.

    A parameter of the description that is a size of the logical shape is replaced by that of `shape`. The
    description has one buffer, or as many as are stored, in the same order; their dtypes and fill values are
    kept. Raises `DecompositionError` (`parameter`) if the name of a parameter is taken.
    """
    name, description = format
    # The function has the sizes of the tensor already; a second parameter might differ from them.
    sizes = _logical_sizes(description, shape, name)
    names = _names(description, name, namer, replaced=sizes)
    arrays = [_over_axes(array, names, sizes, namer) for array in description.index_arrays]
    vars = _vars_along_axes(description, names, namer)
    renamed_axes = [_substitute_names(axis, names, sizes) for axis in description.axes]
    array_axes = [axis for axes, _ in arrays for axis in axes]
    results = map_results(description)
    return InstantiatedFormat(
        name,
        description,
        tuple(shape),
        params=_remaining_params(description, names, replaced=sizes),
        axes=(*renamed_axes, *array_axes),
        buffers=_renamed_buffers(description, stored, name, names, namer),
        index_arrays=tuple(array for _, array in arrays),
        facts=tuple(_substitute_names(fact, names, sizes) for fact in description.facts),
        vars=tuple(vars.values()),
        coordinates=tuple(
            _substitute_names(result, {**names, **vars}, sizes) for result in results
        ),
    )


def with_fresh_vars(format: InstantiatedFormat, namer: Namer) -> InstantiatedFormat:
    """Return the format with other variables, for another iteration."""
    names = {name: namer.fresh(name) for name in format.vars}
    return format._replace(
        vars=tuple(names.values()),
        coordinates=tuple(
            _substitute_names(coordinate, names, {}) for coordinate in format.coordinates
        ),
    )


def _vars_along_axes(
    description: FormatDescription, names: Mapping[str, str], namer: Namer
) -> dict[str, str]:
    """Return the new names of the variables of a format's map."""
    # In small letters, as in scripts: the variable `i` runs along the axis `I`.
    return {
        old: namer.fresh(names[axis].lower())
        for old, axis in zip(map_vars(description), description.buffer.axes, strict=True)
    }


def _remaining_params(
    description: FormatDescription, names: Mapping[str, str], *, replaced: Collection[str]
) -> tuple[Param, ...]:
    """Return the parameters that are not `replaced`, in the new names."""
    return tuple(
        Param(names[param.name], param.dtype)
        for param in description.params
        if param.name not in replaced
    )


def _over_axes(
    array: Buffer, names: Mapping[str, str], sizes: Mapping[str, Expr], namer: Namer
) -> tuple[tuple[DenseFixed, ...], SparseBuffer]:
    """Return an index array as a buffer over dense axes of its own, after these."""
    axes = tuple(
        DenseFixed(
            namer.fresh(f"{names[array.name]}_{number}"), _substitute_names(size, names, sizes)
        )
        for number, size in enumerate(array.shape)
    )
    buffer = SparseBuffer(
        names[array.name],
        tuple(axis.name for axis in axes),
        array.dtype,
        handle=names[array.handle or array.name],
    )
    return axes, buffer


def _names(
    description: FormatDescription, part: str, namer: Namer, *, replaced: Collection[str]
) -> dict[str, str]:
    """Return the new names of parameters that are not `replaced`, of axes and of index arrays."""
    params = {
        param.name: part_parameter(param.name, part)
        for param in description.params
        if param.name not in replaced
    }
    # Not renamed further: callers pass arguments by these names.
    for name in params.values():
        if namer.fresh(name) != name:
            raise DecompositionError(
                "parameter",
                f"The parameter '{name}' of part '{part}' is a name that the program has already.",
            )
    declared = (*description.axes, *description.index_arrays)
    return params | {item.name: namer.fresh(f"{item.name}_{part}") for item in declared}


def _logical_sizes(
    description: FormatDescription, shape: Sequence[Expr], name: str
) -> dict[str, Expr]:
    sizes: dict[str, Expr] = {}
    # Without a declared shape nothing is replaced: the sizes of such a format are its own parameters.
    for size, extent in zip(logical_shape(description) or (), shape, strict=False):
        if isinstance(size, Var) and sizes.setdefault(size.name, extent) != extent:
            raise DecompositionError(
                "shape",
                f"The format of part '{name}' has the size '{size.name}' in two dimensions, whose "
                "sizes differ in the tensor.",
            )
    return sizes


def _substitute_names(node: Node, names: Mapping[str, str], sizes: Mapping[str, Expr]) -> Any:
    """Return an axis or expression in the new names, with sizes for the parameters that they replace."""

    def rule(node: Node) -> Any:
        # A size is an expression of the function, which is already in its names.
        if isinstance(node, Var) and node.name in sizes:
            return sizes[node.name]
        return with_names(node, names)

    return rewrite(node, rule)


def _renamed_buffers(
    description: FormatDescription,
    stored: Sequence[SparseBuffer],
    part: str,
    names: Mapping[str, str],
    namer: Namer,
) -> tuple[SparseBuffer, ...]:
    """Return the buffers of the values, one for each that is stored."""
    described = (description.buffer, *description.more_buffers)
    return tuple(
        _renamed_buffer(buffer, kept, f"{kept.name}_{part}", names, namer)
        for buffer, kept in zip(described, stored, strict=True)
    )


def _renamed_buffer(
    described: SparseBuffer,
    stored: SparseBuffer,
    name: str,
    names: Mapping[str, str],
    namer: Namer,
) -> SparseBuffer:
    return replace(
        with_names(described, names),
        name=namer.fresh(name),
        # The program computes with these; the description may say others.
        dtype=stored.dtype,
        fill=stored.fill,
        handle=names[described.handle or described.name],
    )
