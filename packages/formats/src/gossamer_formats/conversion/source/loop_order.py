"""The digit of a logical coordinate that each axis of a format is, and the loops over sorted elements."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import groupby

from gossamer_formats.conversion.maps.inverse_map import with_sizes
from gossamer_formats.storage import evaluate, shape_of
from gossamer_ir.analysis.axes.logical_elements import map_results, map_vars
from gossamer_ir.arith.affine import affine_of
from gossamer_ir.core.axis_kinds import is_full
from gossamer_ir.nodes import FormatDescription, Var
from gossamer_ir.support.items_by_name import items_by_name
from gossamer_ir.traversal.free_vars import free_vars


def layout_sizes(
    description: FormatDescription, sizes: Mapping[str, int]
) -> tuple[tuple[str, int], ...]:
    """Return the sizes on which the coordinates of elements depend: all but the numbers of slots.

    >>> from gossamer_formats.descriptions.csr import csr
    >>> layout_sizes(csr(), {"m": 4, "n": 4, "nnz": 2})
    (('m', 4), ('n', 4))
    """
    return tuple((name, sizes[name]) for name in _layout_names(description))


@lru_cache(maxsize=256)
def _layout_names(description: FormatDescription) -> tuple[str, ...]:
    lengths = [axis.length for axis in description.axes]
    shapes = [size for array in description.index_arrays for size in array.shape]
    names = free_vars(*lengths, *shape_of(description), *map_results(description), *shapes)
    of_sizes = [param.name for param in description.params if param.dtype != "handle"]
    return tuple(name for name in of_sizes if name in names)


@lru_cache(maxsize=256)
def digit_dimensions(
    description: FormatDescription, layout: tuple[tuple[str, int], ...]
) -> dict[str, int] | None:
    """Return the logical dimension of each axis that varies: its coordinate is the next digit of the logical
    coordinate. None if logical coordinates are not composed of digits.

    >>> from gossamer_formats.descriptions.bsr import bsr
    >>> digit_dimensions(bsr(), (("m", 4), ("n", 4), ("block_rows", 2), ("block_columns", 2)))
    {'IO': 0, 'JO': 1, 'II': 0, 'JI': 1}
    """
    axes, sizes = items_by_name(description.axes), dict(layout)
    names = description.buffer.axes
    lengths = {
        var: evaluate(axes[name].length, sizes)
        for var, name in zip(map_vars(description), names, strict=True)
    }
    vars = list(lengths)
    # The coordinate 0 is not a digit: that of the rows of a block with one row, for example.
    single = {
        var
        for var, name in zip(vars, names, strict=True)
        if lengths[var] == 1 and is_full(axes[name])
    }
    dimensions: dict[str, int] = {}
    for dimension, result in enumerate(map_results(description)):
        base, before = 1, len(names)
        for atom, coefficient in sorted(
            affine_of(with_sizes(result, sizes)).terms.items(), key=lambda term: term[1]
        ):
            if isinstance(atom, Var) and atom.name in single:
                continue
            if not isinstance(atom, Var) or atom.name in dimensions or coefficient < base:
                return None
            if vars.index(atom.name) > before:
                return None
            before = vars.index(atom.name)
            dimensions[atom.name] = dimension
            base = coefficient * lengths[atom.name]
    if any(var not in dimensions and lengths[var] > 1 for var in vars):
        return None
    return {
        name: dimensions[var] for var, name in zip(vars, names, strict=True) if var in dimensions
    }


@lru_cache(maxsize=256)
def lexicographic_loops(
    description: FormatDescription, layout: tuple[tuple[str, int], ...]
) -> tuple[str, ...] | None:
    """Return the axes in an order in which loops visit the elements sorted lexicographically; None if the
    order of the buffer is one, or if there is none.

    >>> from gossamer_formats.descriptions.bsr import bsr
    >>> from gossamer_formats.descriptions.csc import csc
    >>> layout = (("m", 4), ("n", 4), ("block_rows", 2), ("block_columns", 2))
    >>> lexicographic_loops(bsr(), layout), lexicographic_loops(csc(), layout[:2])
    (('IO', 'II', 'JO', 'JI'), None)
    """
    names = description.buffer.axes
    dimensions = digit_dimensions(description, layout)
    if dimensions is None:
        return None
    # Consecutive digits of one coordinate count once.
    order = [
        dimension
        for dimension, _ in groupby(dimensions[name] for name in names if name in dimensions)
    ]
    if len(set(order)) == len(order):
        return None
    ranks = {dimension: order.index(dimension) for dimension in order}
    # Axes with one coordinate stay in front: the sort is stable.
    loops = sorted(names, key=lambda name: ranks[dimensions[name]] if name in dimensions else -1)
    axes = items_by_name(description.axes)
    is_nested = all(
        axes[name].parent is None or axes[name].parent in loops[:depth]
        for depth, name in enumerate(loops)
    )
    return tuple(loops) if is_nested else None
