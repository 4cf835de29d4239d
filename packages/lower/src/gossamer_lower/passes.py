"""Every pass over modules, in the order in which they run: the one list of passes.

A pass is added here by one line, at its place in `ORDERED_PASSES`; `python -m tools.generate pass_imports`
writes the imports and the exports of the package. The pipeline (`lower_to_flat.py`) and the table of passes
by name (`pass_manager.py`) follow from this list and from what the decorator of each pass declares. Passes
that are declared `on_request` are not part of `lower_to_flat`.
"""

from __future__ import annotations

from collections.abc import Callable

from gossamer_ir.analysis.regions import declare_regions
from gossamer_ir.arith.simplify import simplify
from gossamer_ir.nodes import Module
from gossamer_lower.blocks.expand_reducers import expand_reducers
from gossamer_lower.blocks.lower_blocks import lower_blocks
from gossamer_lower.bounds.hoist_bounds_checks import hoist_bounds_checks
from gossamer_lower.bounds.insert_bounds_checks import insert_bounds_checks
from gossamer_lower.buffers.lower_buffers import lower_buffers
from gossamer_lower.host.check_index_arrays import check_index_arrays
from gossamer_lower.host.lower_atomics import lower_atomics
from gossamer_lower.host.outline_parallel import outline_parallel
from gossamer_lower.inspector.extract_inspector import extract_inspector
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
from gossamer_lower.parameters.remove_unused_args import remove_unused_args
from gossamer_lower.parameters.substitute_buffer import substitute_buffer
from gossamer_lower.search.expand_search import expand_search
from gossamer_lower.search.hoist_searches import hoist_searches
from gossamer_lower.search.merge_searches import merge_searches
from gossamer_lower.vector.branch_on_full_masks import branch_on_full_masks
from gossamer_lower.vector.combine_lane_reductions import combine_lane_reductions
from gossamer_lower.vector.eliminate_redundant_masks import eliminate_redundant_masks
from gossamer_lower.vector.hoist_invariant_loads import hoist_invariant_loads
from gossamer_lower.vector.narrow_lanes import narrow_lanes
from gossamer_lower.vector.vectorize_loops import vectorize_loops

ORDERED_PASSES: tuple[Callable[..., Module], ...] = (
    # --- To the position stage and to the loop stage.
    lower_iterations,
    # After the iterations are loops: the location of an element in storage is computed from their
    # positions.
    lower_buffers,
    # --- On request, before the loop stage is lowered.
    # Blocks mark what an inspector computes, so this runs before `lower_blocks` removes them.
    extract_inspector,
    # After the inspector was extracted: it replaces the marked blocks by reads of the inspector's
    # results.
    use_inspector_results,
    # Before everything below, so that each later pass can use the constants.
    substitute_buffer,
    # After the substitution, which leaves arguments unused.
    remove_unused_args,
    # --- To plain statements.
    # First, so that no pass below needs a case for `Combine`.
    expand_reducers,
    # Before `contract_buffers`: only the final position of an init tells where a buffer is first written.
    lower_blocks,
    # After `lower_blocks`: with the inits still in blocks, the accumulator of a row in spmv would
    # remain an array of all rows. Before the bounds checks, so that those are of the indices into the
    # small buffers.
    contract_buffers,
    # --- Conditions of whole loops, and loops that need none: before vectors turn conditions into masks.
    # Before `insert_bounds_checks`: an access that is the same in all lanes is not masked, so under a
    # condition that is still inside the lanes it is refused (`lower.insert_bounds_checks.unmasked_lane`, as
    # sddmm would be).
    unswitch_uniform_conditions,
    # Before anything is peeled, unrolled or vectorized: each access is proved once, with scalar
    # indices.
    insert_bounds_checks,
    # Before `peel_remainder`, which leaves a group alone if a guard stands before its bound, and before
    # copies of a loop would each hoist a check of their own.
    hoist_bounds_checks,
    # Before `vectorize_loops`, which would make masks of the conditions that peeling removes.
    peel_last_iteration,
    # Before `vectorize_loops` for the same reason, and before `unroll_loops`, since it needs the loop.
    peel_remainder,
    # --- Vectors and copies. Lane reductions into consecutive elements come from copies of unrolled loops.
    # Before `unroll_loops`: partial results are kept across an unrolled loop, which must still be one.
    vectorize_loops,
    # Before the passes below: the copies have constant indices, which prove masks, and adjacent
    # elements.
    unroll_loops,
    # After `unroll_loops`, since a mask often holds in all copies but one. Before
    # `hoist_invariant_loads`: a load stays in the loop if its mask varies, even if the mask is always
    # true.
    eliminate_redundant_masks,
    # After `eliminate_redundant_masks`, so that only masks are narrowed that stay. Before
    # `hoist_invariant_loads`: whether a vector fits into 32 bits follows from what it loads.
    narrow_lanes,
    # After `unroll_loops`: the stores to adjacent elements are those of the copies.
    combine_lane_reductions,
    # After `unroll_loops`, so that equal loads of several copies share one register and count once.
    hoist_invariant_loads,
    # After `hoist_invariant_loads`: it copies statements, and a load in both copies is hoisted once. Before
    # the searches, so that each copy gets its own.
    branch_on_full_masks,
    # --- Searches are hoisted and merged as expressions, before they become loops.
    # After all passes that match the shape of a body: a let before a vectorized loop hides the loop
    # from `vectorize_loops`, and a let among stores disables the common subexpressions of
    # `unroll_loops`.
    hoist_searches,
    # After `hoist_searches`, since it needs each search as the value of a let, and before
    # `expand_search`, which would expand a search in a loop into a cursor that also handles values that
    # decrease.
    merge_searches,
    # Last of the three: it takes every search that is left.
    expand_search,
    # After the searches: the two loops would each get a cursor and walk the window again from its
    # begin. After `hoist_invariant_loads`, so that both loops use the vectors that were loaded before
    # the first.
    split_index_set,
    # After `vectorize_loops`: an iteration of a scan needs the result of the one before. After all passes
    # that prove something about the positions of bits. Before `outline_parallel`, since it proves that the
    # word may be read before the loop.
    scan_bits,
    # --- Functions of the flat stage, each run by one thread.
    # After all passes that prove something: an outlined function keeps facts about the buffers that it
    # gets, but not the conditions around its loop.
    outline_parallel,
    # After `outline_parallel`: a buffer of a parallel iteration can leave the serial loop over a chunk,
    # so that it is allocated once per chunk instead of once per iteration.
    hoist_allocations,
    # After `outline_parallel`: what the outlined function allocates is private to a thread. After
    # `vectorize_loops`: accumulations of vectors become one atomic operation for each lane.
    lower_atomics,
    # After `hoist_allocations`: what it computes from the offsets of all rows is then outside of the
    # loop over rows, and such a loop is left alone. After all passes that use facts, which it drops.
    # Before `unswitch_on_alignment`, so that there is one loop.
    check_index_arrays,
    # Last, because it clones whole loops: any later pass would have to do its work twice.
    unswitch_on_alignment,
    # --- On request, for a target.
    lower_math,
)

# They have no decorator, since gossamer-ir has no passes to order.
LANGUAGE_PASSES = (
    PassRecord(name="simplify", function=simplify, on_request=True),
    PassRecord(name="declare_regions", function=declare_regions, on_request=True),
)
"""The passes of gossamer-ir, which any module takes on request."""
