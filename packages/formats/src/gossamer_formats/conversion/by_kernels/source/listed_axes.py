"""Axes whose coordinates index an array of distinct contents: a loop over the contents replaces those over
the axes.

The rows of SELL are stored in the order of an index array, for example. Elements are sorted if the loop is
over the rows, and the inverse of the array says where each is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gossamer_formats.axis_order import ancestors
from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import SharedArguments
from gossamer_formats.conversion.by_kernels.kernels.statements import let, load, loop
from gossamer_formats.conversion.by_kernels.recording.array_scalars import size_of
from gossamer_formats.conversion.by_kernels.recording.recorded_storage import RecordedStorage
from gossamer_formats.conversion.by_kernels.source.source_loops import (
    SourceLoopBuilder,
    content_of,
    length_in,
)
from gossamer_formats.conversion.destination.inverse_map import with_sizes
from gossamer_formats.description_sizes import evaluate
from gossamer_ir.analysis.axes.logical_elements import map_results, map_vars
from gossamer_ir.arith.affine import affine_of
from gossamer_ir.core.axis_kinds import is_full
from gossamer_ir.core.build import ZERO, binary, floordiv, index_var
from gossamer_ir.facts.fact_index import fact_index
from gossamer_ir.nodes import Axis, Cast, Distinct, Expr, FormatDescription, InRange, Load, Var
from gossamer_support.arrays import Array
from gossamer_support.items_by_name import items_by_name


class ListedAxes(NamedTuple):
    """Dense axes whose coordinates index an array, whose contents are the leading digit of a dimension."""

    array: str
    names: tuple[str, ...]
    """The axes. The coordinate along the last of them varies fastest."""
    dimension: int
    width: int
    """The number of coordinates of `dimension` for each content of the array."""
    loops: tuple[str, ...]
    """All axes in an order in which loops visit the elements sorted lexicographically, after the loop
    over the contents."""
    dimensions: Mapping[str, int]
    """The logical dimension of each axis that is a digit."""
    has_slots: bool
    """True if elements are sorted only if the slots of a fiber are, which nothing declares."""
    repeated: tuple[str, ...]
    """Dense axes on which the array does not depend."""


class _Listing(NamedTuple):
    """An element of an index array in a result of the map, and its factor."""

    dimension: int
    load: Load
    factor: int


@lru_cache(maxsize=256)
def listed_axes(
    description: FormatDescription, layout: tuple[tuple[str, int], ...]
) -> ListedAxes | None:
    """Return the axes of a matrix whose coordinates index an array of distinct contents; None if there are
    none, or if elements would not be sorted.

    >>> from gossamer_formats.descriptions.blocked_sell import blocked_sell
    >>> names = ("m", "n", "slices", "height", "longest", "block_rows", "block_columns")
    >>> listed = listed_axes(blocked_sell(), tuple(zip(names, (8, 8, 2, 2, 3, 2, 2))))
    >>> listed.array, listed.names, listed.loops
    ('ROWS', ('S', 'R'), ('II', 'S', 'W', 'R', 'JO', 'JI'))
    """
    sizes = dict(layout)
    listings = _listings(description, sizes)
    if len(listings) != 1 or len(map_results(description)) != 2:
        return None
    (listing,) = listings
    names = _indexing(description, listing.load)
    digits = [_digits(description, sizes, dimension) for dimension in range(2)]
    if names is None or any(
        names_of_dimension is None or not set(names).isdisjoint(names_of_dimension)
        for names_of_dimension in digits
    ):
        return None
    leading, others = (
        digits[dimension] or [] for dimension in (listing.dimension, 1 - listing.dimension)
    )
    loops = _loops(description, sizes, names, leading, others)
    if loops is None:
        return None
    axes, axes_of_coordinates = items_by_name(description.axes), {*names, *leading, *others}
    slots = [
        name
        for name in loops
        if name not in axes_of_coordinates and not _is_single(axes[name], sizes)
    ]
    return ListedAxes(
        listing.load.buffer,
        names,
        listing.dimension,
        listing.factor,
        loops,
        dict.fromkeys(leading, listing.dimension) | dict.fromkeys(others, 1 - listing.dimension),
        has_slots=bool(slots),
        repeated=tuple(name for name in (*leading, *others[1:]) if is_full(axes[name])),
    )


def _listings(description: FormatDescription, sizes: Mapping[str, int]) -> list[_Listing]:
    listings = []
    for dimension, result in enumerate(map_results(description)):
        for atom, factor in affine_of(with_sizes(result, sizes)).terms.items():
            value = atom.value if isinstance(atom, Cast) else atom
            if not isinstance(value, Var):
                if not isinstance(value, Load):
                    return []
                listings.append(_Listing(dimension, value, factor))
    return listings


def _indexing(description: FormatDescription, load: Load) -> tuple[str, ...] | None:
    """Return the dense axes that index an array of distinct contents."""
    axes = items_by_name(description.axes)
    by_var = dict(zip(map_vars(description), description.buffer.axes, strict=True))
    names = [by_var[var.name] for var in load.indices if isinstance(var, Var)]
    buffer = next(array for array in description.index_arrays if array.name == load.buffer)
    is_suitable = (
        len({*names}) == len(load.indices)
        and fact_index(description.facts).holds(load.buffer, Distinct)
        and buffer.shape == tuple(axes[name].length for name in names)
        and all(is_full(axes[name]) for name in names)
    )
    return tuple(names) if is_suitable else None


def _digits(
    description: FormatDescription, sizes: Mapping[str, int], dimension: int
) -> list[str] | None:
    """Return the axes whose coordinates are the digits of a logical coordinate, the highest first, without an
    element of an index array, which must be the highest one; None if it has no digits."""
    axes, names = items_by_name(description.axes), description.buffer.axes
    by_var = dict(zip(map_vars(description), names, strict=True))
    form = affine_of(with_sizes(map_results(description)[dimension], sizes))
    if form.constant:
        return None
    digits: list[str] = []
    base: int | None = 1
    for atom, factor in sorted(form.terms.items(), key=lambda term: term[1]):
        if base is None or factor < base:
            return None
        if not isinstance(atom, Var):
            base = None
            continue
        axis = axes[by_var[atom.name]]
        if _is_single(axis, sizes):
            continue
        digits.insert(0, axis.name)
        base = factor * evaluate(axis.length, sizes)
    return digits


def _is_single(axis: Axis, sizes: Mapping[str, int]) -> bool:
    """Return whether an axis has one coordinate, which is not a digit."""
    return is_full(axis) and evaluate(axis.length, sizes) == 1


def _loops(
    description: FormatDescription,
    sizes: Mapping[str, int],
    names: Sequence[str],
    leading: Sequence[str],
    others: Sequence[str],
) -> tuple[str, ...] | None:
    """Return all axes in an order of loops that visit elements sorted; None if there is none."""
    axes = items_by_name(description.axes)
    without_loop = {*names, *(name for name in axes if _is_single(axes[name], sizes))}
    loops: list[str] = []
    # The slots of the highest digit of the other dimension are visited before it; no others are.
    for added, may_have_slots in (
        (leading, False),
        (others[:1], True),
        (others[1:], False),
        (description.buffer.axes, False),
    ):
        before = {*loops, *without_loop}
        for name in added:
            above = ancestors(axes, name)[::-1]
            loops.extend(axis_name for axis_name in (*above, name) if axis_name not in loops)
        if not may_have_slots and not {*loops} - before <= {*leading, *others}:
            return None
    return tuple(loops)


def axes_in_listed_order(
    arguments: SharedArguments, storage: RecordedStorage, layout: tuple[tuple[str, int], ...]
) -> ListedAxes | None:
    """Return the axes for which a loop is over the contents of their array, whose inverse it adds to the
    arguments; None if the array does not list all contents."""
    listed = listed_axes(storage.description, layout)
    if listed is None:
        return None
    recorder, count = arguments.recorder, content_count(listed, storage.shape)
    array = next(
        index_array
        for index_array in storage.description.index_arrays
        if index_array.name == listed.array
    )
    contents = storage.arrays[array.handle or array.name]
    inverse = recorder.compute(_inverse, contents, count)
    if not recorder.decide(_lists_all, inverse):
        return None
    entries = arguments.integer(f"entries_{listed.array}", recorder.compute(size_of, contents)).expr
    name, size = _inverse_name(listed), arguments.integer(f"contents_{listed.array}", count).expr
    arguments.array(name, inverse, "int64", size, (InRange(name, ZERO, entries),))
    return listed


def content_count(listed: ListedAxes, shape: Sequence[int]) -> int:
    """Return the number of contents that have logical coordinates."""
    return -(-shape[listed.dimension] // listed.width)


def _inverse(contents: Array, count: int) -> Array:
    """Return the entry of an array that has each content, -1 if none has.

    >>> _inverse(np.array([2, 0, 5]), 4)
    array([ 1, -1,  0, -1])
    """
    entries = np.full(count, -1)
    listing_entries = np.flatnonzero((contents >= 0) & (contents < count))
    entries[contents[listing_entries]] = listing_entries
    return entries


def _lists_all(inverse: Array) -> bool:
    return bool((inverse >= 0).all())


def _inverse_name(listed: ListedAxes) -> str:
    return f"ENTRY_{listed.array}"


def add_contents(builder: SourceLoopBuilder, listed: ListedAxes) -> None:
    """Add the loop over the contents, and bind the coordinates of the axes that index the array."""
    content = content_of(listed.array)
    count = content_count(listed, builder.storage.shape)
    builder.contents[listed.array] = count
    builder.nest.append(loop(content.name, ZERO, index_var(f"contents_{listed.array}"), []))
    entry = index_var(f"entry_{listed.array}")
    builder.nest.append(let(entry.name, load(_inverse_name(listed), content, "int64")))
    # The last axis varies fastest, and the digit of the first one has no upper bound.
    rest: Expr = entry
    for depth, name in reversed([*enumerate(listed.names)]):
        coordinate = builder.coordinates[name] = index_var(f"x_{name}")
        size = length_in(builder, builder.by_name[name]).expr
        builder.nest.append(let(coordinate.name, binary("floormod", rest, size) if depth else rest))
        rest = floordiv(rest, size)
