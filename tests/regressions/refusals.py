"""The steps of a regression test that are rejected."""

from __future__ import annotations

from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import Module
from gossamer_lower import lower_buffers, lower_iterations
from gossamer_schedule import ScheduleBuilder
from tests.fuzzing.schedules.sequences import INTRINSICS, Traces

LOWERED = {"coordinate": lower_iterations, "position": lower_buffers}
"""The pass to the next stage."""


def refusals(module: Module, traces: Traces) -> list[str]:
    """Return the codes of the rejected steps, in order.

    A case states them, so that no case passes because its steps have ceased to apply.
    """
    codes = []
    while True:
        builder = ScheduleBuilder(module, intrinsics=INTRINSICS)
        for step in traces.get(module.stage, ()):
            try:
                builder.replay((step,))
            except ScheduleError as error:
                codes.append(error.code)
        if module.stage not in LOWERED:
            return codes
        module = LOWERED[module.stage](builder.module)
