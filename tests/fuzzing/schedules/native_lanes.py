"""Scalable vectors in every loop that may have them."""

from __future__ import annotations

from collections.abc import Iterator

from gossamer_ir.errors import ScheduleError, UnsupportedError
from gossamer_ir.nodes import For, Function, Module
from gossamer_ir.traversal.walk import walk
from gossamer_lower import lower_to_flat
from gossamer_schedule import ScheduleBuilder
from tests.fuzzing.execution.compilers import Scheduler


def with_native_lanes(schedule: Scheduler) -> Scheduler:
    """A schedule after which, at the loop stage, innermost loops are in scalable vectors."""

    def scheduled(module: Module) -> Module:
        module = schedule(module)
        return in_native_lanes(module) if module.stage == "loop" else module

    return scheduled


def in_native_lanes(module: Module) -> Module:
    """The module with `vectorize(lanes="native")` of each innermost loop that accepts it and can be lowered
    then."""
    builder = ScheduleBuilder(module)
    for function in module.functions:
        for loop in _innermost_loops(function):
            tried = ScheduleBuilder(builder.module)
            try:
                tried.vectorize(loop, lanes="native", remainder="masked", function=function.name)
                lower_to_flat(tried.module)
            except (ScheduleError, UnsupportedError):
                continue
            builder = tried
    return builder.module


def _innermost_loops(function: Function) -> Iterator[str]:
    for node in walk(function):
        if isinstance(node, For) and sum(isinstance(inner, For) for inner in walk(node)) == 1:
            yield node.var
