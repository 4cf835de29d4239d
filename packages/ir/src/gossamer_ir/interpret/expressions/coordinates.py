"""Loads and stores at the coordinate stage, which look up the element of their coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from gossamer_ir.core.build import fill_of
from gossamer_ir.interpret.frame import Eval, Exec, Frame
from gossamer_ir.interpret.interpreter_errors import GuardFailed
from gossamer_ir.interpret.memory.layout import Layout
from gossamer_ir.interpret.memory.values import constant_value
from gossamer_ir.interpret.translator import Translator
from gossamer_ir.nodes import Expr, Load, SparseBuffer, Store, Var

Locate: TypeAlias = Callable[[Frame], tuple[Any, ...] | None]


def coordinate_load(node: Load, translator: Translator) -> Eval:
    """Return a load, which gives the buffer's fill value if the coordinates are absent."""
    buffer = translator.buffers[node.buffer]
    assert isinstance(buffer, SparseBuffer)
    fill = constant_value(fill_of(buffer))
    name, locate = node.buffer, _locate(node.buffer, node.indices, translator)

    def run(frame: Frame) -> Any:
        positions = locate(frame)
        return fill if positions is None else frame.views[name].read(positions)

    return run


def coordinate_store(node: Store, translator: Translator) -> Exec:
    """Return a store, which fails if the coordinates are absent. In an init it writes each element once."""
    name, locate = node.buffer, _locate(node.buffer, node.indices, translator)
    value = translator.expr(node.value)

    def run(frame: Frame) -> None:
        positions = locate(frame)
        if positions is None:
            raise GuardFailed(name, ": a store to an absent coordinate")
        view = frame.views[name]
        if frame.initialized is None or frame.initialized.is_new(view, positions):
            view.write(positions, value(frame))

    return run


def positions_of(
    frame: Frame, layout: Layout, *, coordinates: tuple[Any, ...], vars: tuple[str | None, ...]
) -> tuple[Any, ...] | None:
    """Return the positions of the element at some coordinates, None if it is absent.

    `variables` are the names of coordinates that are plain variables. If such a variable iterates the
    same fiber, its position is used without a lookup: this allows iterating axes that are unsorted or have
    duplicates. A position outside of a fixed axis is an error unless the element is found to be absent
    on another axis without reading index arrays at that position.
    """
    elements: list[int] = []
    positions: list[int] = []
    beyond: list[int] = []
    for axis, level in enumerate(layout.levels):
        if layout.parents[axis] in beyond:
            if level.width == 0 and level.indices is not None:
                return None
            if level.width is None or level.indices is not None:
                layout.require_inside(positions, beyond[0], elements)
        parent = layout.parent_element(axis, elements)
        var = vars[axis]
        here = None if var is None else frame.iters.get(var)
        if here is not None and here.level is level and here.parent == parent:
            position: int | None = here.position
        else:
            position = level.find(parent, int(coordinates[axis]))
        if position is None:
            return None
        positions.append(position)
        if layout.parents[axis] in beyond or not layout.is_inside(positions, axis, elements):
            beyond.append(axis)
        elements.append(level.first(parent) + position)
    if beyond:
        layout.require_inside(positions, beyond[0], elements)
    return tuple(np.int64(position) for position in positions)


def _locate(buffer_name: str, indices: tuple[Expr, ...], translator: Translator) -> Locate:
    coordinates = translator.exprs(indices)
    vars = tuple(index.name if isinstance(index, Var) else None for index in indices)

    def run(frame: Frame) -> tuple[Any, ...] | None:
        layout, point = frame.layouts[buffer_name], coordinates(frame)
        key = (*point, *[None if var is None else frame.iters.get(var) for var in vars])
        if key not in layout.positions:
            layout.positions[key] = positions_of(frame, layout, coordinates=point, vars=vars)
        return layout.positions[key]

    return run
