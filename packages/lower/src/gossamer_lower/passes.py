"""Every pass over modules, in the order in which they run.

`ORDERED_PASSES` is the list. Two kinds of passes are not in it: those of gossamer-ir, which have no order
(`LANGUAGE_PASSES` below), and those that run a whole pipeline of this list (`COMPOSED_PASSES` of
`pass_manager.py`), which must therefore be imported after it. `PASSES` has all three by name.

A pass is added here by one line, at its place in `ORDERED_PASSES`; `python -m tools.generate pass_imports`
writes the imports and the exports of the package. Each pass declares in its decorator what must run before
and after it, and why: `pass_order.py` refuses a list in another order. The pipelines (`pipelines.py`) and the
table of passes by name (`pass_manager.py`) follow from this list and from what the decorators declare.
Passes that are declared with `pipeline=None` run on request only.
"""

from __future__ import annotations

from collections.abc import Callable

from gossamer_ir.analysis.regions import declare_regions
from gossamer_ir.arith.simplify import simplify
from gossamer_ir.nodes import Module
from gossamer_lower.blocks.expand_reducers import expand_reducers
from gossamer_lower.blocks.lower_blocks import lower_blocks
from gossamer_lower.bounds_checks.hoist_bounds_checks import hoist_bounds_checks
from gossamer_lower.bounds_checks.insert_bounds_checks import insert_bounds_checks
from gossamer_lower.buffers.lower_buffers import lower_buffers
from gossamer_lower.device.check_stores import check_stores
from gossamer_lower.device.insert_sync import insert_sync
from gossamer_lower.device.lower_cross_thread_reduction import lower_cross_thread_reduction
from gossamer_lower.device.merge_shared_memory import merge_shared_memory
from gossamer_lower.device.pipeline_loops import pipeline_loops
from gossamer_lower.device.split_host_device import split_host_device
from gossamer_lower.host.check_index_arrays import check_index_arrays
from gossamer_lower.host.lower_atomics import lower_atomics
from gossamer_lower.host.outline_parallel import outline_parallel
from gossamer_lower.inspector.extract_inspector import extract_inspector
from gossamer_lower.inspector.remove_unused_args import remove_unused_args
from gossamer_lower.inspector.substitute_buffer import substitute_buffer
from gossamer_lower.inspector.use_inspector_results import use_inspector_results
from gossamer_lower.iterations.lower_iterations import lower_iterations
from gossamer_lower.loops.peel_last_iteration import peel_last_iteration
from gossamer_lower.loops.peel_remainder import peel_remainder
from gossamer_lower.loops.scan_bits import scan_bits
from gossamer_lower.loops.split_index_set import split_index_set
from gossamer_lower.loops.unroll_loops import unroll_loops
from gossamer_lower.loops.unswitch_on_alignment import unswitch_on_alignment
from gossamer_lower.loops.unswitch_uniform_conditions import unswitch_uniform_conditions
from gossamer_lower.lowering_pass import PassRecord
from gossamer_lower.math.lower_math import lower_math
from gossamer_lower.memory.contract_buffers import contract_buffers
from gossamer_lower.memory.hoist_allocations import hoist_allocations
from gossamer_lower.memory.split_vector_buffers import split_vector_buffers
from gossamer_lower.search.expand_search import expand_search
from gossamer_lower.search.hoist_searches import hoist_searches
from gossamer_lower.search.merge_searches import merge_searches
from gossamer_lower.vector.branch_on_full_masks import branch_on_full_masks
from gossamer_lower.vector.combine_lane_reductions import combine_lane_reductions
from gossamer_lower.vector.eliminate_redundant_masks import eliminate_redundant_masks
from gossamer_lower.vector.hoist_invariant_loads import hoist_invariant_loads
from gossamer_lower.vector.load_windows import load_windows
from gossamer_lower.vector.lower_vscale import lower_vscale
from gossamer_lower.vector.narrow_lanes import narrow_lanes
from gossamer_lower.vector.share_gathers import share_gathers
from gossamer_lower.vector.vectorize_loops import vectorize_loops

ORDERED_PASSES: tuple[Callable[..., Module], ...] = (
    # --- To the position stage and to the loop stage.
    lower_iterations,
    lower_buffers,
    # --- On request, before the loop stage is lowered.
    extract_inspector,
    use_inspector_results,
    substitute_buffer,
    remove_unused_args,
    # --- On request, for a target without scalable vectors.
    lower_vscale,
    # --- To plain statements.
    expand_reducers,
    lower_blocks,
    contract_buffers,
    # --- Conditions of whole loops, and loops that need none: before vectors turn conditions into masks.
    unswitch_uniform_conditions,
    insert_bounds_checks,
    hoist_bounds_checks,
    peel_last_iteration,
    peel_remainder,
    # --- Vectors and copies. Lane reductions into consecutive elements come from copies of unrolled loops.
    vectorize_loops,
    unroll_loops,
    split_vector_buffers,
    eliminate_redundant_masks,
    narrow_lanes,
    combine_lane_reductions,
    load_windows,
    share_gathers,
    hoist_invariant_loads,
    branch_on_full_masks,
    # --- Searches are hoisted and merged as expressions, before they become loops.
    hoist_searches,
    merge_searches,
    expand_search,
    split_index_set,
    scan_bits,
    # --- Functions of the flat stage, each run by one thread.
    outline_parallel,
    hoist_allocations,
    lower_atomics,
    check_index_arrays,
    unswitch_on_alignment,
    # --- On request, for a target.
    lower_math,
    # --- To an entry of the host and kernels of a device.
    pipeline_loops,
    lower_cross_thread_reduction,
    check_stores,
    split_host_device,
    merge_shared_memory,
    insert_sync,
)

# They have no decorator, since gossamer-ir has no passes to order.
LANGUAGE_PASSES = (
    PassRecord(name="simplify", function=simplify, pipeline=None),
    PassRecord(name="declare_regions", function=declare_regions, pipeline=None),
)
"""The passes of gossamer-ir, which any module takes on request."""
