"""The order of the passes from the loop stage to the flat stage."""

from __future__ import annotations

from gossamer_ir.nodes import Module
from gossamer_ir.typed_calls import typed
from gossamer_lower.combine_lane_reductions import combine_lane_reductions
from gossamer_lower.expand_reducers import expand_reducers
from gossamer_lower.expand_search import expand_search
from gossamer_lower.guard_accesses import guard_accesses
from gossamer_lower.hoist_allocations import hoist_allocations
from gossamer_lower.hoist_conditions import hoist_conditions
from gossamer_lower.hoist_guards import hoist_guards
from gossamer_lower.hoist_searches import hoist_searches
from gossamer_lower.hoist_vectors import hoist_vectors
from gossamer_lower.lower_atomics import lower_atomics
from gossamer_lower.lower_blocks import lower_blocks
from gossamer_lower.merge_searches import merge_searches
from gossamer_lower.outline_parallel import outline_parallel
from gossamer_lower.part_loops import part_loops
from gossamer_lower.passes import require_kept_promise
from gossamer_lower.peel_last import peel_last
from gossamer_lower.peel_rest import peel_rest
from gossamer_lower.plan_allocations import plan_allocations
from gossamer_lower.remove_masks import remove_masks
from gossamer_lower.unroll_loops import unroll_loops
from gossamer_lower.unswitch_loops import unswitch_loops
from gossamer_lower.vectorize_loops import vectorize_loops

FLAT_PASSES = (
    expand_reducers,
    lower_blocks,
    plan_allocations,
    hoist_conditions,
    guard_accesses,
    hoist_guards,
    peel_last,
    peel_rest,
    vectorize_loops,
    unroll_loops,
    remove_masks,
    combine_lane_reductions,
    hoist_vectors,
    hoist_searches,
    merge_searches,
    expand_search,
    part_loops,
    outline_parallel,
    hoist_allocations,
    lower_atomics,
    unswitch_loops,
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
