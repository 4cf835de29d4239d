"""Checks of software-pipelined loops."""

from __future__ import annotations

from gossamer_ir.analysis.statements.software_pipelining import MAX_STAGES, MIN_STAGES, copies_ahead
from gossamer_ir.core.annotations import PIPELINE
from gossamer_ir.nodes import Function
from gossamer_ir.verify.context import VerifyContext


def check_pipelines(context: VerifyContext, function: Function) -> None:
    """Check that a pipelined loop is serial, has a supported number of stages and begins with copies that may
    run ahead. At the flat stage the annotation is ignored: buffers have been allocated."""
    for loop, place in context.pipelined if context.stage.name != "flat" else ():
        stages = dict(loop.annotations)[PIPELINE]
        is_number = isinstance(stages, int) and not isinstance(stages, bool)
        if not is_number or not MIN_STAGES <= int(stages) <= MAX_STAGES:
            context.report(
                "verify.pipeline.stages",
                f"The number of stages of loop '{loop.var}' is {stages!r}; expected from {MIN_STAGES} to "
                f"{MAX_STAGES}.",
                place,
            )
        if loop.kind != "serial" or not copies_ahead(loop, function):
            context.report(
                "verify.pipeline.copy",
                f"The loop '{loop.var}', which is marked '{PIPELINE}', is not serial, or does not "
                "begin with a copy that may run ahead.",
                place,
            )
