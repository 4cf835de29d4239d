"""The digit of a logical coordinate that each axis of a format is, and the loops over sorted elements."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from itertools import groupby

from gossamer_formats.conversion.destination.inverse_map import with_sizes
from gossamer_formats.description_sizes import evaluate, shape_of
from gossamer_ir.analysis.axes.logical_elements import map_results, map_vars
from gossamer_ir.arith.affine import Affine, affine_of
from gossamer_ir.core.axis_kinds import is_full
from gossamer_ir.nodes import FormatDescription, Var
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_support.items_by_name import items_by_name


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
    size_params = [param.name for param in description.params if param.dtype != "handle"]
    return tuple(name for name in size_params if name in names)


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
    names = dict(zip(map_vars(description), description.buffer.axes, strict=True))
    lengths = {var: evaluate(axes[name].length, sizes) for var, name in names.items()}
    # The coordinate 0 is not a digit: that of the rows of a block with one row, for example.
    single = {var for var, name in names.items() if lengths[var] == 1 and is_full(axes[name])}
    dimensions: dict[str, int] = {}
    for dimension, result in enumerate(map_results(description)):
        digits = _digits_of(affine_of(with_sizes(result, sizes)), lengths, without=single)
        if digits is None or not dimensions.keys().isdisjoint(digits):
            return None
        dimensions |= dict.fromkeys(digits, dimension)
    if any(var not in dimensions and length > 1 for var, length in lengths.items()):
        return None
    return {name: dimensions[var] for var, name in names.items() if var in dimensions}


def _digits_of(
    form: Affine, lengths: Mapping[str, int], *, without: Collection[str]
) -> list[str] | None:
    """Return the variables that are the digits of an affine form, the lowest first; None if it has other
    terms, if digits overlap, or if a higher digit varies faster, in the order of `lengths`."""
    order = list(lengths)
    digits: list[str] = []
    base, before = 1, len(order)
    for atom, coefficient in sorted(form.terms.items(), key=lambda term: term[1]):
        if isinstance(atom, Var) and atom.name in without:
            continue
        if not isinstance(atom, Var) or coefficient < base or order.index(atom.name) > before:
            return None
        before = order.index(atom.name)
        digits.append(atom.name)
        base = coefficient * lengths[atom.name]
    return digits


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
