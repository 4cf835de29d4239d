"""How the passes of a pipeline are run."""

from __future__ import annotations

from collections.abc import Callable

from gossamer_ir.nodes import Module
from gossamer_lower.lowering_pass import PassRecord
from gossamer_lower.pipelines.pipeline_step import PipelineStep


def run_pipeline(
    module: Module,
    steps: tuple[PipelineStep, ...],
    *,
    around: Callable[[PassRecord, Module], Module],
) -> Module:
    """Return what a pipeline makes of a module; `around` runs each pass that is needed, for instance
    `run_verified`.

    >>> from gossamer_lower.pipelines.flat_steps import FLAT_STEPS
    >>> from gossamer_testkit.examples import SCALE
    >>> run_pipeline(SCALE, FLAT_STEPS, around=run_verified).stage
    'flat'
    """
    for step in steps:
        if step.is_needed(module):
            module = around(step.record, module)
    return module


def run_pass(record: PassRecord, module: Module) -> Module:
    """Return the result of a pass."""
    return record.function(module)


def run_verified(record: PassRecord, module: Module) -> Module:
    """Return the result of a pass; raise `InternalError` if it is invalid, or still has contents that the
    pass removes."""
    result = record.function(module)
    record.require_kept_promise(result)
    return result
