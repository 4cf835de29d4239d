"""Vectors of other lanes in a scheduled program: `convert_lanes` for every vectorized loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from gossamer_ir.core.build import integer_value
from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import For, Function, Module
from gossamer_schedule import ScheduleBuilder
from gossamer_schedule.cursor.cursor_at import Cursor, cursor_at
from tests.fuzzing.execution.compilers import Scheduler


def with_converted_lanes(
    schedule: Scheduler, *lanes: int | str, refused: Callable[[ScheduleError], None]
) -> Scheduler:
    """A schedule after which, at the loop stage, vectors are converted to the first lanes, then to the next.
    `refused` is called with the errors of loops that have no other lanes."""

    def scheduled(module: Module) -> Module:
        module = schedule(module)
        for count in lanes if module.stage == "loop" else ():
            module = in_lanes(module, count, refused=refused)
        return module

    return scheduled


def in_lanes(
    module: Module, lanes: int | str, *, refused: Callable[[ScheduleError], None]
) -> Module:
    """The module with other lanes: scalable ones if they are a text, in loops that have fixed lanes, or
    fixed ones in those that have scalable lanes."""
    builder = ScheduleBuilder(module)
    is_scalable = isinstance(lanes, str)
    for function in module.functions:
        for loop in tuple(_vectorized(cursor_at(module, function))):
            cursor = next(
                vectorized
                for vectorized in _vectorized(_function_of(builder, function))
                if vectorized.node.var == loop.node.var
            )
            # A conversion of an outer loop converts all vectors below it.
            if (integer_value(cursor.node.extent) is None) != is_scalable:
                _convert(builder, cursor, function, lanes=lanes, refused=refused)
    return builder.module


def _function_of(builder: ScheduleBuilder, function: Function) -> Cursor[Any]:
    current = next(other for other in builder.module.functions if other.name == function.name)
    return cursor_at(builder.module, current)


def _vectorized(root: Cursor[Any]) -> Iterator[Cursor[Any]]:
    for cursor in root.below():
        if isinstance(cursor.node, For) and cursor.node.kind == "vectorized":
            yield cursor


def _convert(
    builder: ScheduleBuilder,
    cursor: Cursor[Any],
    function: Function,
    *,
    lanes: int | str,
    refused: Callable[[ScheduleError], None],
) -> None:
    """Convert a loop with the first of the loops around it for which that is accepted, or with a new one."""
    loop, name = cursor.node.var, function.name
    for outer in (around.var for around in reversed(cursor.loops)):
        with suppress(ScheduleError):
            builder.convert_lanes(outer, loop, lanes=lanes, function=name)
            return
    with_unit = builder.copy().add_unit_loop(loop, function=name)
    try:
        with_unit.convert_lanes(with_unit.names[0], loop, lanes=lanes, function=name)
    except ScheduleError as error:
        refused(error)
    else:
        builder.replay(with_unit.trace[len(builder.trace) :])
