"""Loads and stores at the coordinate stage, which look up the element of their coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from gossamer_ir.core.axis_kinds import indices_of
from gossamer_ir.core.build import fill_of
from gossamer_ir.interpret.frame import Eval, Exec, Frame
from gossamer_ir.interpret.interpreter_errors import GuardFailed
from gossamer_ir.interpret.memory.layout import ElementAddress, Layout
from gossamer_ir.interpret.memory.values import constant_value
from gossamer_ir.interpret.translator import Translator
from gossamer_ir.nodes import Expr, Load, SparseBuffer, Store, Var
from gossamer_support.items_by_name import items_by_name

Locate: TypeAlias = Callable[[Frame], ElementAddress | None]


def coordinate_load(node: Load, translator: Translator) -> Eval:
    """Return a load, which gives the buffer's fill value if the coordinates are absent."""
    buffer = translator.buffers[node.buffer]
    assert isinstance(buffer, SparseBuffer)
    fill = constant_value(fill_of(buffer))
    name, locate = node.buffer, _locate(buffer, node.indices, translator)

    def run(frame: Frame) -> Any:
        address = locate(frame)
        return fill if address is None else frame.views[name].element(address[1])

    return run


def coordinate_store(node: Store, translator: Translator) -> Exec:
    """Return a store, which fails if the coordinates are absent. In an init it writes each element once."""
    buffer = translator.buffers[node.buffer]
    assert isinstance(buffer, SparseBuffer)
    name, locate = node.buffer, _locate(buffer, node.indices, translator)
    value = translator.expr(node.value)

    def run(frame: Frame) -> None:
        address = locate(frame)
        if address is None:
            raise GuardFailed(name, ": a store to an absent coordinate")
        view, (positions, where) = frame.views[name], address
        if frame.initialized is None or frame.initialized.is_new(view, positions):
            view.set_element(where, value(frame))

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


def _locate(buffer: SparseBuffer, indices: tuple[Expr, ...], translator: Translator) -> Locate:
    coordinates, name = translator.exprs(indices), buffer.name
    axes = items_by_name(translator.function.axes)
    # Coordinates of dense axes are positions, whatever iterates them.
    vars = tuple(
        index.name if isinstance(index, Var) and indices_of(axes[axis]) is not None else None
        for axis, index in zip(buffer.axes, indices, strict=True)
    )
    iterating = tuple(filter(None, vars))

    def run(frame: Frame) -> ElementAddress | None:
        layout, point = frame.layouts[name], coordinates(frame)
        key = (*point, *[frame.iters.get(var) for var in iterating]) if iterating else point
        # Programs access most elements several times.
        try:
            return layout.addresses[key]
        except KeyError:
            positions = positions_of(frame, layout, coordinates=point, vars=vars)
        address = None if positions is None else (positions, frame.views[name].locate(positions))
        layout.addresses[key] = address
        return address

    return run
