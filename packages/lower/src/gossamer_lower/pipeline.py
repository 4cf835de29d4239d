"""The order of the passes from the loop stage to the flat stage."""

from __future__ import annotations

from gossamer_ir.core.typed_calls import typed
from gossamer_ir.nodes import Module
from gossamer_lower.blocks.expand_reducers import expand_reducers
from gossamer_lower.blocks.lower_blocks import lower_blocks
from gossamer_lower.bounds.hoist_bounds_checks import hoist_bounds_checks
from gossamer_lower.bounds.insert_bounds_checks import insert_bounds_checks
from gossamer_lower.host.lower_atomics import lower_atomics
from gossamer_lower.host.outline_parallel import outline_parallel
from gossamer_lower.loops.peel_last_iteration import peel_last_iteration
from gossamer_lower.loops.peel_remainder import peel_remainder
from gossamer_lower.loops.split_index_set import split_index_set
from gossamer_lower.loops.unroll_loops import unroll_loops
from gossamer_lower.loops.unswitch_on_alignment import unswitch_on_alignment
from gossamer_lower.loops.unswitch_uniform_conditions import unswitch_uniform_conditions
from gossamer_lower.memory.contract_buffers import contract_buffers
from gossamer_lower.memory.hoist_allocations import hoist_allocations
from gossamer_lower.pass_manager import require_kept_promise
from gossamer_lower.search.expand_search import expand_search
from gossamer_lower.search.hoist_searches import hoist_searches
from gossamer_lower.search.merge_searches import merge_searches
from gossamer_lower.vector.combine_lane_reductions import combine_lane_reductions
from gossamer_lower.vector.eliminate_redundant_masks import eliminate_redundant_masks
from gossamer_lower.vector.hoist_invariant_loads import hoist_invariant_loads
from gossamer_lower.vector.vectorize_loops import vectorize_loops

FLAT_PASSES = (
    expand_reducers,
    lower_blocks,
    contract_buffers,
    unswitch_uniform_conditions,
    insert_bounds_checks,
    hoist_bounds_checks,
    peel_last_iteration,
    peel_remainder,
    vectorize_loops,
    unroll_loops,
    eliminate_redundant_masks,
    combine_lane_reductions,
    hoist_invariant_loads,
    hoist_searches,
    merge_searches,
    expand_search,
    split_index_set,
    outline_parallel,
    hoist_allocations,
    lower_atomics,
    unswitch_on_alignment,
)
"""What runs on a module of the loop stage, in this order."""


@typed
def lower_to_flat(module: Module, *, verify_each: bool = False) -> Module:
    """Takes a module of the loop stage to the flat stage, which a backend receives.

    Raises `UnsupportedError` where a pass does. With `verify_each`, `InternalError` names the first
    pass that gives an invalid module or leaves what it should have taken out.

    >>> from gossamer_lower.examples import body_text, program
    >>> flat = lower_to_flat(program("for i in T.serial(n): Y[i] = X[P[i]]"))
    >>> flat.stage
    'flat'
    >>> print(body_text(flat))
    for i in T.serial(n):
        T.guard(P[i] >= 0 and P[i] < n, X)
        Y[i] = X[P[i]]
    """
    for lower in FLAT_PASSES:
        module = lower(module)
        if verify_each:
            require_kept_promise(lower.__name__, module)
    return module
