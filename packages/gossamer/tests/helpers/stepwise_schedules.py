"""Schedules that are checked after each step by the interpreter, and at the end as machine code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from script_runs import call, copied

from gossamer.compilation.build_kernels import KERNELS
from gossamer.compilation.pipeline import next_stage
from gossamer_backend import Registry
from gossamer_ir.interchange.records import SCHEDULED_STAGES, Schedule
from gossamer_ir.interpret.program import InterpretedKernel
from gossamer_ir.nodes import Module
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder

INTRINSICS = Registry().plugin("generic-cpu").intrinsics

Step: TypeAlias = tuple[str, tuple[Any, ...], dict[str, Any]]
Steps: TypeAlias = Sequence[Step]
Arguments: TypeAlias = Mapping[str, Any]


def step(op: str, *names: Any, **options: Any) -> Step:
    """One step of a schedule."""
    return op, names, options


def scheduled(module: Module, **steps_by_stage: Steps) -> tuple[list[Module], Schedule]:
    """The module after each step of a schedule (at each stage, first the unscheduled module), and the
    schedule."""
    modules, traces = [], {}
    for stage in SCHEDULED_STAGES[SCHEDULED_STAGES.index(module.stage) :]:
        builder = ScheduleBuilder(module, intrinsics=INTRINSICS)
        modules.append(builder.module)
        for op, names, options in steps_by_stage.get(stage, ()):
            getattr(builder, op)(*names, **options)
            modules.append(verify(builder.module))
        traces[stage] = builder.trace
        if stage != SCHEDULED_STAGES[-1]:
            module = next_stage(builder.module)
    return modules, Schedule(**traces)


def require_schedule(
    module: Module,
    cases: Sequence[tuple[Arguments, dict[str, Any]]],
    *,
    tolerance: float = 0.0,
    **steps_by_stage: Steps,
) -> None:
    """Every step of a schedule leaves the expected arrays (within a tolerance), and so does the kernel."""
    steps, schedule = scheduled(module, **steps_by_stage)
    kernel = KERNELS.build_module(module, schedule=schedule).kernel
    for number, scheduled_module in enumerate(steps):
        program = InterpretedKernel(scheduled_module, vscale=1, chunks=1)
        (function,) = scheduled_module.functions
        when = f"step {number} at the {scheduled_module.stage} stage"
        for arguments, expected in cases:
            copies = copied({param.name: arguments[param.name] for param in function.params})
            program.run(copies)
            _require_equal(copies, expected, when, tolerance=tolerance)
    for arguments, expected in cases:
        copies = copied(arguments)
        call(kernel, copies)
        _require_equal(copies, expected, "the kernel", tolerance=tolerance)


def _require_equal(result: Arguments, expected: Arguments, when: str, *, tolerance: float) -> None:
    for name, array in expected.items():
        left = result[name].reshape(array.shape)
        np.testing.assert_allclose(left, array, rtol=0, atol=tolerance, err_msg=f"{name}, {when}")


def integers(random: np.random.Generator, *shape: int) -> Any:
    """Small integers as float32, so that sums are exact."""
    return random.integers(-3, 4, shape).astype(np.float32)
