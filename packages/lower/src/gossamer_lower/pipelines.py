"""The pipelines that are derived from the list of passes, and how one is run."""

from __future__ import annotations

from collections.abc import Callable

from gossamer_ir.nodes import Module, StageName
from gossamer_lower.lowering_pass import PassRecord, PipelineName, listed_records
from gossamer_lower.pass_order import require_order
from gossamer_lower.passes import ORDERED_PASSES

LISTED: tuple[PassRecord, ...] = listed_records(ORDERED_PASSES)
"""The records of `ORDERED_PASSES`, in this order, which each pass allows."""
require_order(LISTED)


def pipeline_from(stage: StageName, name: PipelineName) -> tuple[PassRecord, ...]:
    """Return the passes of a pipeline, in their order, from the first one that takes modules of a stage.

    >>> [record.name for record in pipeline_from("flat", "device")][:2]
    ['pipeline_loops', 'lower_cross_thread_reduction']
    """
    records = [record for record in LISTED if record.pipeline == name]
    (first, *_) = (number for number, record in enumerate(records) if stage in record.takes)
    return tuple(records[first:])


def run_pipeline(
    module: Module,
    records: tuple[PassRecord, ...],
    *,
    around: Callable[[PassRecord, Module], Module],
) -> Module:
    """Return what a pipeline makes of a module; `around` runs each pass, for instance `run_verified`.

    >>> from gossamer_testkit.examples import SCALE
    >>> run_pipeline(SCALE, pipeline_from("loop", "main"), around=run_verified).stage
    'flat'
    """
    for record in records:
        module = around(record, module)
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
