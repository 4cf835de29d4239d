"""Results of the map of a source in kernels, and their bounds."""

from __future__ import annotations

from gossamer_formats.conversion.by_kernels.recording.array_scalars import size_of
from gossamer_formats.conversion.by_kernels.source.source_loops import (
    SourceLoopBuilder,
    add_array,
    content_of,
    length_in,
)
from gossamer_formats.conversion.destination.dtypes import index_dtypes
from gossamer_formats.conversion.destination.inverse_map import with_sizes
from gossamer_formats.description_sizes import evaluate
from gossamer_ir.analysis.axes.logical_elements import map_vars
from gossamer_ir.arith.affine import affine_of
from gossamer_ir.core.build import ZERO, add, index, mul
from gossamer_ir.nodes import Cast, Expr, Load, Var
from gossamer_ir.traversal.rewrite import rewrite


# Other expressions: their operands are visited.
def in_kernel(builder: SourceLoopBuilder, result: Expr) -> Expr:
    """Return a result of the map with the coordinates, sizes and arrays of the kernel."""
    description, sizes = builder.storage.description, builder.storage.sizes
    names = dict(zip(map_vars(description), description.buffer.axes, strict=True))
    shapes = {buffer.name: buffer.shape for buffer in description.index_arrays}

    def rule(node: object) -> Expr | None:
        if isinstance(node, Cast) and isinstance(node.value, Var):
            return node.value
        if isinstance(node, Load) and node.buffer in builder.contents:
            return content_of(node.buffer)
        if isinstance(node, Load):
            at: Expr = ZERO
            for coordinate, length in zip(node.indices, shapes[node.buffer], strict=True):
                at = add(mul(at, index(evaluate(length, sizes))), coordinate)
            return Load(_add_map_array(builder, node.buffer), (at,), node.dtype)
        if isinstance(node, Var):
            name = names.get(node.name)
            return index(sizes[node.name]) if name is None else builder.coordinates[name]
        return None

    rewritten: Expr = rewrite(result, rule)
    return rewritten


def bounds_of(builder: SourceLoopBuilder, result: Expr) -> tuple[int | None, int | None]:
    """Return the least and the largest value of a result of the map, None where it is not known."""
    form = affine_of(with_sizes(result, builder.storage.sizes))
    low = high = form.constant
    for atom, coefficient in form.terms.items():
        count = _count_of(builder, atom)
        if count is None:
            return None, None
        most = coefficient * (count - 1)
        low, high = low + min(most, 0), high + max(most, 0)
    return low, high


# Other expressions: their operands are visited.
def _count_of(builder: SourceLoopBuilder, atom: Expr) -> int | None:
    """Return the number of values 0, 1, ... of a coordinate or of an element of an index array."""
    description = builder.storage.description
    if isinstance(atom, Var):
        names = dict(zip(map_vars(description), description.buffer.axes, strict=True))
        return evaluate(builder.by_name[names[atom.name]].length, builder.storage.sizes)
    value = atom.value if isinstance(atom, Cast) else atom
    return builder.contents.get(value.buffer) if isinstance(value, Load) else None


def _add_map_array(builder: SourceLoopBuilder, name: str) -> str:
    """Add an array of the map, and return its name in kernels."""
    description = builder.storage.description
    buffer = next(array for array in description.index_arrays if array.name == name)
    handle = buffer.handle or buffer.name
    indexing = [axis for axis in description.axes if buffer.shape == (axis.length,)]
    if indexing:
        size = length_in(builder, indexing[0])
    else:
        count = builder.arguments.recorder.compute(size_of, builder.storage.arrays[handle])
        size = builder.arguments.integer(f"k_{handle}", count)
    return add_array(builder, handle, index_dtypes(description)[handle], size.expr)
