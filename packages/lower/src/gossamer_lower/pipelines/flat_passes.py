"""The passes from the loop stage to the flat stage, in the order in which they run.

Those that depend on the target are in `flat_pipeline.py`; those for devices and those that run on request are
in other lists. `passes.py` has them all, and says how a pass is added. The pipeline imports each of these
passes where a module needs it, by `flat_steps.py`, which is generated.
"""

from __future__ import annotations

from collections.abc import Callable

from gossamer_ir.nodes import Module
from gossamer_lower.blocks.expand_reducers import expand_reducers
from gossamer_lower.blocks.lower_blocks import lower_blocks
from gossamer_lower.bounds_checks.hoist_bounds_checks import hoist_bounds_checks
from gossamer_lower.bounds_checks.insert_bounds_checks import insert_bounds_checks
from gossamer_lower.host.insert_index_array_checks import insert_index_array_checks
from gossamer_lower.host.lower_atomics import lower_atomics
from gossamer_lower.host.outline_parallel import outline_parallel
from gossamer_lower.loops.peel_last_iteration import peel_last_iteration
from gossamer_lower.loops.peel_remainder import peel_remainder
from gossamer_lower.loops.scan_bits import scan_bits
from gossamer_lower.loops.split_index_set import split_index_set
from gossamer_lower.loops.unroll_loops import unroll_loops
from gossamer_lower.loops.unswitch_on_alignment import unswitch_on_alignment
from gossamer_lower.loops.unswitch_uniform_conditions import unswitch_uniform_conditions
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
from gossamer_lower.vector.narrow_lanes import narrow_lanes
from gossamer_lower.vector.share_gathers import share_gathers
from gossamer_lower.vector.vectorize_loops import vectorize_loops

FLAT_PASSES: tuple[Callable[[Module], Module], ...] = (
    # --- To plain statements.
    expand_reducers,
    lower_blocks,
    contract_buffers,
    # --- Conditions of whole loops, and loops that need none.
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
    insert_index_array_checks,
    unswitch_on_alignment,
)
"""The passes that `lower_to_flat` runs for any target, in this order."""
