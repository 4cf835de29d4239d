"""How many elements the fibers of an axis have, and whether these are sorted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer_formats.conversion.compiled.assembly_state import (
    AssemblyState,
    NotDirectError,
    Place,
    UnsortedFibersError,
)
from gossamer_formats.conversion.compiled.element_order import ascends, can_ascend, is_grouped_by
from gossamer_formats.conversion.compiled.program import Operand
from gossamer_formats.storage import Array
from gossamer_ir.nodes import Axis


def fiber_counts(state: AssemblyState, place: Place, keys: Sequence[str]) -> Array:
    """Return how many elements each fiber has.

    Within a fiber, elements must be sorted by the coordinates of some axes, and distinct. Raises
    `NotDirectError` (`needs_order`).
    """
    state.require_table(place.slots)
    counts = np.zeros(place.slots, np.int32)
    if not is_sorted(state, keys):
        _count_and_check(state, place, keys, counts)
    elif place.slots == 1 and state.loop.visits_all:
        counts = np.array([state.source.values.size])
    else:
        state.query(counted_in(place.text), {"COUNT": Operand(counts, place.size)})
    return counts


def is_sorted(state: AssemblyState, keys: Sequence[str]) -> bool:
    """Return whether the elements of a fiber are known to be sorted by their coordinates along axes.

    The other logical coordinates are those of the fiber. Raises `UnsortedFibersError` if they would be sorted
    if the fibers of the source were.
    """
    if not state.requires_order:
        return True
    if any(name not in state.logical for name in keys):
        return False
    dimensions = [state.logical[name] for name in keys]
    if not can_ascend(state.order, dimensions):
        return False
    if not ascends(state.order, dimensions):
        raise UnsortedFibersError("the fibers of the source are not sorted")
    return True


def is_grouped(state: AssemblyState, axis: Axis) -> bool:
    """Return whether the elements of each fiber of an axis are known to be together, in the order of the
    fibers."""
    names = state.description.buffer.axes
    outer = [name for name in names[: names.index(axis.name)] if state.coordinates[name] != "0"]
    if any(name not in state.logical for name in outer):
        return False
    return is_grouped_by(state.order, [state.logical[name] for name in outer])


def _count_and_check(
    state: AssemblyState, place: Place, keys: Sequence[str], counts: Array
) -> None:
    if len(keys) > 1:
        raise NotDirectError("elements are not in order", needs_order=True)
    lasts, flags = np.full(place.slots, -1, np.int64), np.zeros(1, np.uint8)
    coordinate = state.coordinates[keys[0]]
    statements = [
        f"g_ = {place.text}",
        f"UNSORTED[0] = T.select({coordinate} > LAST[g_], UNSORTED[0], 1)",
        f"LAST[g_] = {coordinate}",
        *counted_in("g_"),
    ]
    found: dict[str, Array | Operand | int] = {
        "COUNT": Operand(counts, place.size),
        "LAST": Operand(lasts, place.size),
        "FLAGS": flags,
    }
    state.query(
        statements,
        found,
        before=['UNSORTED = T.alloc_buffer((1,), "int64", scope="local")', "UNSORTED[0] = 0"],
        after=["FLAGS[0] = T.uint8(UNSORTED[0])"],
    )
    if flags[0]:
        raise NotDirectError("elements are not sorted", needs_order=True)


def counted_in(place: str) -> list[str]:
    return [f"COUNT[{place}] = COUNT[{place}] + 1"]
