"""Axes that store no coordinates: the place of an element is its coordinate."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.compiled.assembly_state import AssemblyState, NotDirectError, Place
from gossamer_ir.core.axis_kinds import Indptr
from gossamer_ir.nodes import Axis


def add_fixed(state: AssemblyState, axis: Axis, coordinate: str, width: int) -> None:
    parent = state.places[axis.parent]
    same = parent == state.position
    state.set_place(axis, _numbered(state, parent, coordinate, width), parent.slots * width)
    state.position = (
        state.places[axis.name]
        if same
        else Place(
            _numbered(state, state.position, coordinate, width), state.position.slots * width
        )
    )


def _numbered(state: AssemblyState, place: Place, digit: str, width: int) -> str:
    if width == 1:
        return place.text
    return digit if place.text == "0" else f"({place.text}) * {width} + ({digit})"


def add_ragged(state: AssemblyState, axis: Axis, indptr: Indptr, parent: Place) -> None:
    coordinate, lengths = state.coordinates[axis.name], np.zeros(parent.slots, np.int64)
    longer = f"T.max(LENGTH[{parent.text}], {coordinate} + 1)"
    state.query([f"LENGTH[{parent.text}] = {longer}"], {"LENGTH": lengths})
    longest = int(lengths.max(initial=0))
    if state.sizes.bind(axis.length, longest) < longest:
        raise NotDirectError("a fiber is too long")
    offsets = state.add_offsets(axis, indptr, lengths)
    state.arguments[f"OFFSETS_{axis.name}"] = offsets
    at = f"OFFSETS_{axis.name}[{parent.text}] + {coordinate}"
    state.set_varied(axis, at, int(offsets[-1]))
