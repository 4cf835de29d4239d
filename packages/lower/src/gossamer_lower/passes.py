"""Every pass over modules, in the order in which they run: the one list of passes.

A pass is added here by one line, at its place. The pipeline (`lower_to_flat.py`), the table of passes by
name (`pass_manager.py`) and the names that the package exports follow from this list and from what the
decorator of each pass declares. Passes that are declared `on_request` are not part of `lower_to_flat`.
"""

# The order of the lines is the order of the passes, so isort must not sort them. Each is imported under
# its own name: that is how a module exports a name to type checkers.
# isort: off
# fmt: off
# ruff: noqa: E501

# To the position stage and to the loop stage.
from gossamer_lower.iterations.lower_iterations import lower_iterations as lower_iterations
from gossamer_lower.buffers.lower_buffers import lower_buffers as lower_buffers

# On request, before the loop stage is lowered.
from gossamer_lower.inspector.extract_inspector import extract_inspector as extract_inspector
from gossamer_lower.inspector.use_inspector_results import use_inspector_results as use_inspector_results
from gossamer_lower.specialize.specialize_buffer import specialize_buffer as specialize_buffer
from gossamer_lower.specialize.remove_unused_args import remove_unused_args as remove_unused_args

# To plain statements.
from gossamer_lower.blocks.expand_reducers import expand_reducers as expand_reducers
from gossamer_lower.blocks.lower_blocks import lower_blocks as lower_blocks
from gossamer_lower.memory.contract_buffers import contract_buffers as contract_buffers

# Conditions of whole loops, and loops that need none: before vectors turn conditions into masks.
from gossamer_lower.loops.unswitch_uniform_conditions import unswitch_uniform_conditions as unswitch_uniform_conditions
from gossamer_lower.bounds.insert_bounds_checks import insert_bounds_checks as insert_bounds_checks
from gossamer_lower.bounds.hoist_bounds_checks import hoist_bounds_checks as hoist_bounds_checks
from gossamer_lower.loops.peel_last_iteration import peel_last_iteration as peel_last_iteration
from gossamer_lower.loops.peel_remainder import peel_remainder as peel_remainder

# Vectors and copies. Lane reductions into consecutive elements come from copies of unrolled loops.
from gossamer_lower.vector.vectorize_loops import vectorize_loops as vectorize_loops
from gossamer_lower.loops.unroll_loops import unroll_loops as unroll_loops
from gossamer_lower.vector.eliminate_redundant_masks import eliminate_redundant_masks as eliminate_redundant_masks
from gossamer_lower.vector.combine_lane_reductions import combine_lane_reductions as combine_lane_reductions
from gossamer_lower.vector.hoist_invariant_loads import hoist_invariant_loads as hoist_invariant_loads

# Searches are hoisted and merged as expressions, before they become loops.
from gossamer_lower.search.hoist_searches import hoist_searches as hoist_searches
from gossamer_lower.search.merge_searches import merge_searches as merge_searches
from gossamer_lower.search.expand_search import expand_search as expand_search
from gossamer_lower.loops.split_index_set import split_index_set as split_index_set

# Functions of the flat stage, each run by one thread.
from gossamer_lower.host.outline_parallel import outline_parallel as outline_parallel
from gossamer_lower.memory.hoist_allocations import hoist_allocations as hoist_allocations
from gossamer_lower.host.lower_atomics import lower_atomics as lower_atomics
from gossamer_lower.loops.unswitch_on_alignment import unswitch_on_alignment as unswitch_on_alignment

# On request, for a target.
from gossamer_lower.math.lower_math import lower_math as lower_math

# Passes of gossamer-ir. They have no decorator, since gossamer-ir has no passes to order.
from gossamer_ir.analysis.regions import declare_regions as _declare_regions
from gossamer_ir.arith.simplify import simplify as _simplify
from gossamer_lower.lowering_pass import PassRecord as _PassRecord

LANGUAGE_PASSES = (
    _PassRecord(function=_simplify, on_request=True),
    _PassRecord(function=_declare_regions, on_request=True),
)
"""The passes of gossamer-ir, which any module takes on request."""
