"""The passes from the coordinate stage to the flat stage, one file each."""

from gossamer_lower.combine_lane_reductions import combine_lane_reductions
from gossamer_lower.expand_reducers import expand_reducers
from gossamer_lower.expand_search import expand_search
from gossamer_lower.extract_preprocess import extract_preprocess
from gossamer_lower.guard_accesses import guard_accesses
from gossamer_lower.guard_flat import guard_flat
from gossamer_lower.hoist_allocations import hoist_allocations
from gossamer_lower.hoist_conditions import hoist_conditions
from gossamer_lower.hoist_guards import hoist_guards
from gossamer_lower.hoist_searches import hoist_searches
from gossamer_lower.hoist_vectors import hoist_vectors
from gossamer_lower.lower_atomics import lower_atomics
from gossamer_lower.lower_blocks import lower_blocks
from gossamer_lower.lower_buffers import lower_buffers
from gossamer_lower.lower_iterations import lower_iterations
from gossamer_lower.lower_math import lower_math
from gossamer_lower.merge_searches import merge_searches
from gossamer_lower.outline_parallel import outline_parallel
from gossamer_lower.part_loops import part_loops
from gossamer_lower.peel_last import peel_last
from gossamer_lower.peel_rest import peel_rest
from gossamer_lower.pipeline import FLAT_PASSES, lower_to_flat
from gossamer_lower.plan_allocations import plan_allocations
from gossamer_lower.remove_masks import remove_masks
from gossamer_lower.remove_preprocess import remove_preprocess
from gossamer_lower.remove_unused_args import remove_unused_args
from gossamer_lower.specialize_buffer import specialize_buffer
from gossamer_lower.unroll_loops import unroll_loops
from gossamer_lower.unswitch_loops import unswitch_loops
from gossamer_lower.vectorize_loops import vectorize_loops

__all__ = [
    "FLAT_PASSES",
    "combine_lane_reductions",
    "expand_reducers",
    "expand_search",
    "extract_preprocess",
    "guard_accesses",
    "guard_flat",
    "hoist_allocations",
    "hoist_conditions",
    "hoist_guards",
    "hoist_searches",
    "hoist_vectors",
    "lower_atomics",
    "lower_blocks",
    "lower_buffers",
    "lower_iterations",
    "lower_math",
    "lower_to_flat",
    "merge_searches",
    "outline_parallel",
    "part_loops",
    "peel_last",
    "peel_rest",
    "plan_allocations",
    "remove_masks",
    "remove_preprocess",
    "remove_unused_args",
    "specialize_buffer",
    "unroll_loops",
    "unswitch_loops",
    "vectorize_loops",
]
