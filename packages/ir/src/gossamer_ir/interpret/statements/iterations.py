"""Translates sparse iterations of the coordinate stage: loops over the elements of axes, not padding."""

from __future__ import annotations

import msgspec
import numpy as np

from gossamer_ir.core.axis_kinds import is_full
from gossamer_ir.core.iteration_axes import attachment_of, axis_names
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interpret.frame import Exec, FiberPosition, Frame, Initialized
from gossamer_ir.interpret.memory.levels import Level
from gossamer_ir.interpret.translator import Translator, call_in_order
from gossamer_ir.nodes import Function, Iteration
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_support.items_by_name import items_by_name


class Loop(msgspec.Struct, frozen=True):
    """One loop of an iteration, over an axis; `var` takes its coordinates.

    `parent` is the axis whose iterator selects the fiber: by its coordinate if `is_attached`, else by its
    element.
    """

    axis: str
    var: str
    kind: str
    parent: str | None
    is_attached: bool
    is_free: bool
    """True for dense fixed axes that are not attached, which need no iterator over their parent."""


def iteration(node: Iteration, translator: Translator) -> Exec:
    """Return an iteration as a function of the frame, which runs all inits and then all updates.

    In a composable function the inits are added to `translator.inits`, which runs before the whole body.
    """
    loops = _loops(node, translator.function)
    # An iteration is a nest of its own: inits in it are not hoisted out of it.
    (around, translator.around), (inits, translator.inits) = (
        (translator.around, []),
        (translator.inits, None),
    )
    body, init = translator.body(node.body), translator.body(node.init)
    translator.around, translator.inits = around, inits
    nest = _restoring_elements(_nest(loops, body))
    if not node.init:
        return nest
    initialize = _restoring_elements(
        _with_init_scope(_nest(_loops_of_init(loops, node), _once_for_each_element(init)))
    )
    if translator.inits is None:
        return call_in_order((initialize, nest))
    translator.inits.append(initialize)
    return nest


def _restoring_elements(nest: Exec) -> Exec:
    """Return a nest that restores the current elements and coordinates when it ends."""

    def run(frame: Frame) -> None:
        elements, coordinates = dict(frame.elements), dict(frame.coordinates)
        nest(frame)
        frame.elements, frame.coordinates = elements, coordinates

    return run


def _with_init_scope(nest: Exec) -> Exec:
    def run(frame: Frame) -> None:
        outer, frame.initialized = frame.initialized, Initialized()
        nest(frame)
        frame.initialized = outer

    return run


def _once_for_each_element(init: Exec) -> Exec:
    def run(frame: Frame) -> None:
        init(frame)
        if frame.initialized is not None:
            frame.initialized.end()

    return run


def _loops(node: Iteration, function: Function) -> list[Loop]:
    axes = items_by_name(function.axes)
    members = [(name, attachment_of(entry)) for entry in node.axes for name in axis_names(entry)]
    return [
        Loop(
            name,
            var,
            kind,
            parent=axes[name].parent if attached is None else attached,
            is_attached=attached is not None,
            is_free=is_full(axes[name]) and attached is None,
        )
        for (name, attached), var, kind in zip(members, node.vars, node.kinds, strict=True)
    ]


def _loops_of_init(loops: list[Loop], node: Iteration) -> list[Loop]:
    """Return the loops whose variables the init uses, and those that select their fibers, of either kind."""
    names = {name for stmt in node.init for name in free_vars(stmt)}
    needed: list[Loop] = []
    parents: set[str | None] = set()
    for loop in reversed(loops):
        if loop.var in names or loop.axis in parents:
            needed.append(loop)
            parents.add(loop.parent)
    return needed[::-1]


def _nest(loops: list[Loop], body: Exec) -> Exec:
    run = body
    for loop in reversed(loops):
        run = _run_loop(loop, run)
    return run


def _run_loop(loop: Loop, body: Exec) -> Exec:
    def run(frame: Frame) -> None:
        level = frame.levels[loop.axis]
        is_rootless, parent = _parent_element(loop, level, frame)
        # The attached coordinate has no element, so its fiber is empty.
        if parent is None and not is_rootless:
            return
        first = level.first(parent or 0)
        for position in range(level.count(parent or 0)):
            coordinate = level.coordinate(parent or 0, position)
            # Slots of padding have a position but are not elements.
            if level.is_element(coordinate):
                frame.values[loop.var] = np.int64(coordinate)
                frame.iters[loop.var] = FiberPosition(level, parent, position)
                frame.elements[loop.axis] = None if is_rootless else first + position
                frame.coordinates[loop.axis] = coordinate
                body(frame)

    return run


def _parent_element(loop: Loop, level: Level, frame: Frame) -> tuple[bool, int | None]:
    """Return whether a dense axis is iterated without its parent, and the parent's element, None if
    absent."""
    if loop.is_attached:
        return False, _attached_element(loop, level, frame)
    if loop.parent is None:
        return False, 0
    element = frame.elements.get(loop.parent)
    if element is not None:
        return False, element
    if loop.is_free:
        return True, None
    raise _parent_error(loop.axis, loop.parent)


def _attached_element(loop: Loop, level: Level, frame: Frame) -> int | None:
    """Return the element of the axis's own parent at the coordinate of the iterator that it is attached to,
    None if there is none."""
    if loop.parent not in frame.coordinates or level.parent is None:
        raise _parent_error(loop.axis, loop.parent)
    coordinate, parent = frame.coordinates[loop.parent], frame.levels[level.parent]
    above = _element_above(parent, frame)
    position = parent.find(above, coordinate)
    if position is None or not 0 <= position < parent.count(above):
        return None
    return parent.first(above) + position


def _element_above(level: Level, frame: Frame) -> int:
    if level.parent is None or frame.levels[level.parent].size == 1:
        return 0
    element = frame.elements.get(level.parent)
    if element is None:
        raise _parent_error(level.name, level.parent)
    return element


def _parent_error(axis_name: str, parent: str | None) -> UnsupportedError:
    return UnsupportedError(
        "interpret.missing_parent",
        f"Axis '{axis_name}' is iterated without an iterator over '{parent}' before it.",
    )
