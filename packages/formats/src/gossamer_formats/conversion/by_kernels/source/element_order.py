"""In which order the loops visit the elements, and whether these are distinct."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from gossamer_formats.conversion.by_kernels.recording.recorded_storage import RecordedStorage
from gossamer_formats.conversion.by_kernels.source.element_loop import ElementLoop
from gossamer_formats.conversion.by_kernels.source.listed_axes import ListedAxes
from gossamer_formats.conversion.by_kernels.source.loop_order import digit_dimensions, layout_sizes
from gossamer_ir.core.axis_kinds import indices_of
from gossamer_ir.core.build import integer_value
from gossamer_ir.nodes import FormatDescription
from gossamer_support.items_by_name import items_by_name


class NextDigit(NamedTuple):
    """The logical dimension whose coordinate has the coordinate of an axis as its next digit, and whether
    a fiber of the axis is visited in ascending order."""

    dimension: int
    ascends: bool


class ElementOrder(NamedTuple):
    """The digits of the logical coordinates in the order of the loops, from the outermost; none if logical
    coordinates are not composed of digits. `are_distinct`: no two elements have equal coordinates."""

    digits: tuple[NextDigit, ...]
    are_distinct: bool


UNKNOWN = ElementOrder((), are_distinct=False)


@lru_cache(maxsize=512)
def declared_order(
    description: FormatDescription,
    layout: tuple[tuple[str, int], ...],
    loops: tuple[str, ...],
    *,
    are_sorted: bool = False,
) -> ElementOrder:
    """Return what the declarations of a format say about elements that are visited by loops over its axes.

    `are_sorted`: the slots of all fibers are visited in the order of their coordinates, whatever the format
    declares.

    >>> from gossamer_formats.descriptions.bsr import bsr
    >>> layout = (("m", 4), ("n", 4), ("block_rows", 2), ("block_columns", 2))
    >>> order = declared_order(bsr(sorted=False), layout, ("IO", "II", "JO", "JI"))
    >>> [digit.dimension for digit in order.digits], [digit.ascends for digit in order.digits]
    ([0, 0, 1, 1], [True, True, False, True])
    >>> order.are_distinct, ascends(order, (0,)), ascends(order, (1,))
    (True, True, False)
    """
    dimensions = digit_dimensions(description, layout)
    if dimensions is None:
        return UNKNOWN
    stored = {name: indices_of(axis) for name, axis in items_by_name(description.axes).items()}
    digits = []
    for name in loops:
        indices = stored[name]
        if name in dimensions:
            is_sorted = are_sorted or indices is None or indices.sorted
            digits.append(NextDigit(dimensions[name], is_sorted))
    are_distinct = all(indices is None or indices.unique for indices in stored.values())
    return ElementOrder(tuple(digits), are_distinct)


def order_of_loop(
    loop: ElementLoop, source: RecordedStorage, *, are_sorted: bool = False
) -> ElementOrder:
    """Return what is known about the order in which loops visit the elements; `are_sorted` is that of
    `declared_order`."""
    if loop.solved is not None:
        dimensions = (loop.solved.dimension, 1 - loop.solved.dimension)
        return ElementOrder(
            tuple(NextDigit(dimension, ascends=True) for dimension in dimensions), are_distinct=True
        )
    if loop.listed is not None:
        return _order_of_contents(source.description, loop.listed, are_sorted=are_sorted)
    layout = layout_sizes(source.description, source.sizes)
    return declared_order(source.description, layout, loop.axis_names, are_sorted=are_sorted)


def _order_of_contents(
    description: FormatDescription, listed: ListedAxes, *, are_sorted: bool
) -> ElementOrder:
    """Return what the declarations say about elements that are visited by a loop over the contents of an
    array."""
    stored = {name: indices_of(axis) for name, axis in items_by_name(description.axes).items()}
    digits = [NextDigit(listed.dimension, ascends=True)]
    for name in listed.loops:
        indices = stored[name]
        if name in listed.dimensions:
            is_sorted = indices is None or ((are_sorted or indices.sorted) and not listed.has_slots)
            digits.append(NextDigit(listed.dimensions[name], is_sorted))
    are_distinct = all(indices is None or indices.unique for indices in stored.values())
    return ElementOrder(tuple(digits), are_distinct and not listed.has_slots)


def can_ascend(order: ElementOrder, dimensions: Sequence[int]) -> bool:
    """Return whether elements that agree in all other dimensions are sorted lexicographically by these, if
    the fibers of all axes are sorted."""
    # The loops over digits of other coordinates have one iteration each among such elements. A dimension
    # without digits has a single coordinate.
    digits = [digit.dimension for digit in order.digits]
    wanted = [dimension for dimension in dimensions if dimension in digits]
    is_known = bool(digits) or not dimensions
    return (
        is_known
        and without_repetitions([dimension for dimension in digits if dimension in wanted])
        == wanted
    )


def ascends(order: ElementOrder, dimensions: Sequence[int]) -> bool:
    """Return whether elements that agree in all other dimensions are known to be sorted lexicographically by
    these."""
    are_sorted = all(digit.ascends for digit in order.digits if digit.dimension in dimensions)
    return are_sorted and can_ascend(order, dimensions)


def is_grouped_by(order: ElementOrder, dimensions: Sequence[int]) -> bool:
    """Return whether elements that agree in these dimensions are known to be together, and all to be sorted
    lexicographically by these dimensions."""
    digits = [digit.dimension for digit in order.digits]
    count = sum(dimension in dimensions for dimension in digits)
    are_first = all(dimension in dimensions for dimension in digits[:count])
    return are_first and ascends(order, dimensions)


@lru_cache(maxsize=256)
def needs_order(description: FormatDescription) -> bool:
    """Return whether a format says that some of its indices are sorted.

    >>> from gossamer_formats.descriptions.csr import csr
    >>> needs_order(csr()), needs_order(csr(sorted=False))
    (True, False)
    """
    stored = [indices_of(axis) for axis in description.axes]
    return any(indices is not None and indices.sorted for indices in stored)


@lru_cache(maxsize=256)
def is_unordered_list(description: FormatDescription) -> bool:
    """Return whether a format stores elements one after the other, in any order.

    >>> from gossamer_formats.descriptions.coo import coo
    >>> is_unordered_list(coo(sorted=False)), is_unordered_list(coo())
    (True, False)
    """
    axes = items_by_name(description.axes)
    for name in description.buffer.axes:
        if indices_of(axes[name]) is not None:
            return not needs_order(description)
        if integer_value(axes[name].length) != 1:
            return False
    return False


def without_repetitions(values: Sequence[int]) -> list[int]:
    """Return integers with one of several equal ones that follow each other."""
    return [value for value, _ in groupby(values)]
