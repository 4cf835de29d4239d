"""Every pass over modules, in the order in which they run.

`ORDERED_PASSES` is the list. It has the passes of two pipelines, `flat` and `device`. Their lists are
modules of their own because a process imports only what it runs: `FLAT_PASSES` (`pipelines/flat_passes.py`),
to which `pipelines/flat_pipeline.py` adds those that depend on the target, and `DEVICE_PASSES`
(`pipelines/device_passes.py`). `lower_iterations` and `lower_buffers` lead to the loop stage, before the
others of the flat pipeline. Two kinds of passes are not in the list: those of gossamer-ir, which have no
order (`LANGUAGE_PASSES` below), and those that run a whole pipeline (`COMPOSED_PASSES` of
`passes_by_name.py`). `PASSES` has all three by name.

A pass is added by one line, at its place in one of the four lists; `python -m tools.generate pass_imports`
writes the imports and the exports of the package. Each pass declares in its decorator what must run before
and after it, and why: `pass_order.py` refuses a list in another order. Passes that are declared with
`pipeline=None` run on request only.
"""

from __future__ import annotations

from collections.abc import Callable

from gossamer_ir.analysis.regions import declare_regions
from gossamer_ir.arith.simplify import simplify
from gossamer_ir.nodes import Module
from gossamer_lower.buffers.lower_buffers import lower_buffers
from gossamer_lower.inspector.extract_inspector import extract_inspector
from gossamer_lower.inspector.remove_unused_args import remove_unused_args
from gossamer_lower.inspector.substitute_buffer import substitute_buffer
from gossamer_lower.inspector.use_inspector_results import use_inspector_results
from gossamer_lower.iterations.lower_iterations import lower_iterations
from gossamer_lower.lowering_pass import PassRecord, listed_records
from gossamer_lower.pass_order import require_order
from gossamer_lower.pipelines.device_passes import DEVICE_PASSES
from gossamer_lower.pipelines.flat_pipeline import FLAT_PIPELINE

ORDERED_PASSES: tuple[Callable[..., Module], ...] = (
    # --- To the position stage and to the loop stage.
    lower_iterations,
    lower_buffers,
    # --- On request, before the loop stage is lowered.
    extract_inspector,
    use_inspector_results,
    substitute_buffer,
    remove_unused_args,
    # --- To the flat stage.
    *FLAT_PIPELINE,
    # --- To an entry of the host and kernels of a device.
    *DEVICE_PASSES,
)

PASS_RECORDS: tuple[PassRecord, ...] = listed_records(ORDERED_PASSES)
"""The records of `ORDERED_PASSES`, in this order, which each pass allows."""
require_order(PASS_RECORDS)

# They have no decorator, since gossamer-ir has no passes to order.
LANGUAGE_PASSES = (
    PassRecord(name="simplify", function=simplify, pipeline=None),
    PassRecord(name="declare_regions", function=declare_regions, pipeline=None),
)
"""The passes of gossamer-ir, which any module takes on request."""
