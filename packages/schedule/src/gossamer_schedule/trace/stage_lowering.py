"""The steps of a builder that lower its module to the next stage."""

from __future__ import annotations

from collections.abc import Callable

from gossamer_ir.core.iteration_axes import iterated_axes
from gossamer_ir.core.lowered_names import fused_name
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Iteration, Module
from gossamer_schedule.cursor.cursor_at import addressable_stmts
from gossamer_schedule.cursor.handles import loop_names
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.primitive_result import PrimitiveResult
from gossamer_schedule.trace.codec import LOWERINGS


def lower_stage(module: Module, lower: Callable[[Module], Module] | None) -> PrimitiveResult:
    """Return the module at the next stage, as the result of a step, which forwards variables of fused axes.

    Raises `ScheduleError`: `schedule.lower.last`, `schedule.lower.no_passes`.
    """
    op = LOWERINGS.get(module.stage)
    if op is None:
        raise schedule_error(
            "lower.last",
            f"The builder is at the {module.stage} stage, the last one that schedules apply to.",
            hint="Compile a kernel with gossamer.compile(program, schedule=builder).",
        )
    if lower is None:
        raise schedule_error(
            "lower.no_passes",
            "The builder has no passes to lower its module.",
            hint="Make it with gossamer.schedule(program), or give lower=.",
        )
    after = lower(module)
    return PrimitiveResult(after, (), Step(op, {}), _fused_loops(module, after))


def require_lowers(step: Step, module: Module) -> None:
    """Refuse a step that lowers modules of another stage (`schedule.lower.stage`)."""
    if LOWERINGS.get(module.stage) != step.op:
        raise schedule_error(
            "lower.stage",
            f"The step {step.op} does not lower a module of the {module.stage} stage.",
            hint="Replay the trace on the program that it was made for.",
        )


def _fused_loops(before: Module, after: Module) -> dict[str, tuple[str, ...]]:
    """Return the variables of fused axes, each with the loop over their elements."""
    loops = loop_names(after)
    iterated = (
        item
        for function in before.functions
        for node in addressable_stmts(function.body)
        if isinstance(node, Iteration)
        for item in iterated_axes(node)
    )
    groups = (item.vars for item in iterated if len(item.vars) > 1)
    return {
        name: (fused_name(group),)
        for group in groups
        if fused_name(group) in loops
        for name in group
    }
