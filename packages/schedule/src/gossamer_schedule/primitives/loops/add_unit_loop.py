"""`add_unit_loop`: insert a loop of one iteration around a loop or block."""

from __future__ import annotations

from gossamer_ir.core.build import ONE, ZERO
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import For, Module
from gossamer_ir.traversal.names import namer_of
from gossamer_schedule.cursor.resolve import LOOP_STAGES, find_function, find_named, require_stage
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step


@primitive
def add_unit_loop(module: Module, name: str, *, function: str | None = None) -> Result:
    """Insert loop `<name>_unit`, which has one iteration, around a loop or block.

    The loop can be bound to a thread axis, or be the target of `compute_at`. By itself it has no effect on
    the generated code. The result's name is that of the loop.

    Raises `ScheduleError`: `schedule.add_unit_loop.no_name`, `.no_function`, `.stage`.

    >>> from gossamer_testkit.examples import SCALE
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(SCALE))
    for i in T.serial(n):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[vi] * 2.0
    >>> print(body_text(add_unit_loop(SCALE, "scale").module))
    for i in T.serial(n):
        for scale_unit in T.serial(1):
            with T.block("scale"):
                vi = T.axis.spatial(n, i)
                Y[vi] = X[vi] * 2.0
    """
    require_stage(module, "add_unit_loop", stages=LOOP_STAGES)
    root = find_function(module, "add_unit_loop", function=function)
    cursor = find_named(root, name=name)

    unit = For(namer_of(root.function).fresh(f"{name}_unit"), ZERO, ONE, (cursor.node,))

    rewritten = cursor.replaced_by((unit,)).module

    taken = step(name=name, function=function)
    return Result(rewritten, (unit.var,), Step("add_unit_loop", taken))
