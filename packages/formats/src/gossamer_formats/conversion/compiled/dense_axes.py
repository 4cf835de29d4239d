"""Axes that store no coordinates: the place of an element is its coordinate."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.compiled.assembly_state import AssemblyState, NotDirectError, Place
from gossamer_formats.conversion.compiled.program import Operand
from gossamer_ir.core.axis_kinds import Indptr
from gossamer_ir.nodes import Axis


def add_fixed(
    state: AssemblyState, axis: Axis, coordinate: str, width: int, size: str | None = None
) -> None:
    """Add an axis with `width` slots in each fiber; `size` is the text of that."""
    parent = state.places[axis.parent]
    size = state.width(axis.name, width) if size is None else size
    same = parent == state.position
    state.set_place(axis, _numbered(state, axis, parent, coordinate, width=width, size=size))
    state.position = (
        state.places[axis.name]
        if same
        else _numbered(state, axis, state.position, coordinate, width=width, size=size)
    )


def _numbered(
    state: AssemblyState, axis: Axis, place: Place, digit: str, *, width: int, size: str
) -> Place:
    if width == 1:
        return place
    slots = place.slots * width
    if place.slots == 1 and place.text == "0":
        return Place(digit, slots, size)
    if place.size.isdigit() or size.isdigit():
        count = f"({place.size}) * ({size})"
    else:
        count = state.integer(f"N_{axis.name}_{len(state.arguments)}", slots)
    return Place(f"({place.text}) * {size} + ({digit})", slots, count)


def add_ragged(state: AssemblyState, axis: Axis, indptr: Indptr, parent: Place) -> None:
    coordinate, lengths = state.coordinates[axis.name], np.zeros(parent.slots, np.int64)
    longer = f"T.max(LENGTH[{parent.text}], {coordinate} + 1)"
    state.query([f"LENGTH[{parent.text}] = {longer}"], {"LENGTH": Operand(lengths, parent.size)})
    longest = int(lengths.max(initial=0))
    if state.sizes.bind(axis.length, longest) < longest:
        raise NotDirectError("a fiber is too long")
    offsets = state.add_offsets(indptr, lengths)
    at = state.pass_offsets(axis, offsets, parent).format(parent.text)
    state.set_varied(axis, f"{at} + {coordinate}", int(offsets[-1]))
