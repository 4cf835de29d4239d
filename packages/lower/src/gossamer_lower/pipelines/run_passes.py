"""How the passes of a pipeline are run."""

from __future__ import annotations

from collections.abc import Callable

from gossamer_ir.nodes import Module
from gossamer_lower.lowering_pass import PassRecord


def run_pipeline(
    module: Module,
    records: tuple[PassRecord, ...],
    *,
    around: Callable[[PassRecord, Module], Module],
) -> Module:
    """Return what a pipeline makes of a module; `around` runs each pass, for instance `run_verified`.

    >>> from gossamer_lower.lowering_pass import listed_records
    >>> from gossamer_lower.pipelines.flat_passes import FLAT_PASSES
    >>> from gossamer_testkit.examples import SCALE
    >>> run_pipeline(SCALE, listed_records(FLAT_PASSES), around=run_verified).stage
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
