"""The passes from the coordinate stage to the flat stage, one file each.

`passes.py` lists them, and `python -m tools.generate pass_imports exports` writes these exports. A pass is
imported when it is first used: a process that compiles for a CPU needs none of those for devices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gossamer_lower.blocks.expand_reducers import expand_reducers
    from gossamer_lower.blocks.lower_blocks import lower_blocks
    from gossamer_lower.bounds_checks.hoist_bounds_checks import hoist_bounds_checks
    from gossamer_lower.bounds_checks.insert_bounds_checks import insert_bounds_checks
    from gossamer_lower.buffers.lower_buffers import lower_buffers
    from gossamer_lower.device.insert_sync import insert_sync
    from gossamer_lower.device.lower_cross_thread_reduction import lower_cross_thread_reduction
    from gossamer_lower.device.merge_shared_memory import merge_shared_memory
    from gossamer_lower.device.pipeline_loops import pipeline_loops
    from gossamer_lower.device.split_host_device import split_host_device
    from gossamer_lower.device.verify_stores import verify_stores
    from gossamer_lower.host.insert_index_array_checks import insert_index_array_checks
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
    from gossamer_lower.math.lower_math import lower_math
    from gossamer_lower.memory.contract_buffers import contract_buffers
    from gossamer_lower.memory.hoist_allocations import hoist_allocations
    from gossamer_lower.memory.split_vector_buffers import split_vector_buffers
    from gossamer_lower.pipelines.bounds_check_flat import bounds_check_flat
    from gossamer_lower.pipelines.device_passes import DEVICE_PASSES
    from gossamer_lower.pipelines.flat_passes import FLAT_PASSES
    from gossamer_lower.pipelines.lower_to_device import lower_to_device
    from gossamer_lower.pipelines.lower_to_flat import lower_to_flat
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

_HOMES = {
    "DEVICE_PASSES": "gossamer_lower.pipelines.device_passes",
    "FLAT_PASSES": "gossamer_lower.pipelines.flat_passes",
    "bounds_check_flat": "gossamer_lower.pipelines.bounds_check_flat",
    "branch_on_full_masks": "gossamer_lower.vector.branch_on_full_masks",
    "combine_lane_reductions": "gossamer_lower.vector.combine_lane_reductions",
    "contract_buffers": "gossamer_lower.memory.contract_buffers",
    "eliminate_redundant_masks": "gossamer_lower.vector.eliminate_redundant_masks",
    "expand_reducers": "gossamer_lower.blocks.expand_reducers",
    "expand_search": "gossamer_lower.search.expand_search",
    "extract_inspector": "gossamer_lower.inspector.extract_inspector",
    "hoist_allocations": "gossamer_lower.memory.hoist_allocations",
    "hoist_bounds_checks": "gossamer_lower.bounds_checks.hoist_bounds_checks",
    "hoist_invariant_loads": "gossamer_lower.vector.hoist_invariant_loads",
    "hoist_searches": "gossamer_lower.search.hoist_searches",
    "insert_bounds_checks": "gossamer_lower.bounds_checks.insert_bounds_checks",
    "insert_index_array_checks": "gossamer_lower.host.insert_index_array_checks",
    "insert_sync": "gossamer_lower.device.insert_sync",
    "load_windows": "gossamer_lower.vector.load_windows",
    "lower_atomics": "gossamer_lower.host.lower_atomics",
    "lower_blocks": "gossamer_lower.blocks.lower_blocks",
    "lower_buffers": "gossamer_lower.buffers.lower_buffers",
    "lower_cross_thread_reduction": "gossamer_lower.device.lower_cross_thread_reduction",
    "lower_iterations": "gossamer_lower.iterations.lower_iterations",
    "lower_math": "gossamer_lower.math.lower_math",
    "lower_to_device": "gossamer_lower.pipelines.lower_to_device",
    "lower_to_flat": "gossamer_lower.pipelines.lower_to_flat",
    "lower_vscale": "gossamer_lower.vector.lower_vscale",
    "merge_searches": "gossamer_lower.search.merge_searches",
    "merge_shared_memory": "gossamer_lower.device.merge_shared_memory",
    "narrow_lanes": "gossamer_lower.vector.narrow_lanes",
    "outline_parallel": "gossamer_lower.host.outline_parallel",
    "peel_last_iteration": "gossamer_lower.loops.peel_last_iteration",
    "peel_remainder": "gossamer_lower.loops.peel_remainder",
    "pipeline_loops": "gossamer_lower.device.pipeline_loops",
    "remove_unused_args": "gossamer_lower.inspector.remove_unused_args",
    "scan_bits": "gossamer_lower.loops.scan_bits",
    "share_gathers": "gossamer_lower.vector.share_gathers",
    "split_host_device": "gossamer_lower.device.split_host_device",
    "split_index_set": "gossamer_lower.loops.split_index_set",
    "split_vector_buffers": "gossamer_lower.memory.split_vector_buffers",
    "substitute_buffer": "gossamer_lower.inspector.substitute_buffer",
    "unroll_loops": "gossamer_lower.loops.unroll_loops",
    "unswitch_on_alignment": "gossamer_lower.loops.unswitch_on_alignment",
    "unswitch_uniform_conditions": "gossamer_lower.loops.unswitch_uniform_conditions",
    "use_inspector_results": "gossamer_lower.inspector.use_inspector_results",
    "vectorize_loops": "gossamer_lower.vector.vectorize_loops",
    "verify_stores": "gossamer_lower.device.verify_stores",
}

__all__ = [
    "DEVICE_PASSES",
    "FLAT_PASSES",
    "bounds_check_flat",
    "branch_on_full_masks",
    "combine_lane_reductions",
    "contract_buffers",
    "eliminate_redundant_masks",
    "expand_reducers",
    "expand_search",
    "extract_inspector",
    "hoist_allocations",
    "hoist_bounds_checks",
    "hoist_invariant_loads",
    "hoist_searches",
    "insert_bounds_checks",
    "insert_index_array_checks",
    "insert_sync",
    "load_windows",
    "lower_atomics",
    "lower_blocks",
    "lower_buffers",
    "lower_cross_thread_reduction",
    "lower_iterations",
    "lower_math",
    "lower_to_device",
    "lower_to_flat",
    "lower_vscale",
    "merge_searches",
    "merge_shared_memory",
    "narrow_lanes",
    "outline_parallel",
    "peel_last_iteration",
    "peel_remainder",
    "pipeline_loops",
    "remove_unused_args",
    "scan_bits",
    "share_gathers",
    "split_host_device",
    "split_index_set",
    "split_vector_buffers",
    "substitute_buffer",
    "unroll_loops",
    "unswitch_on_alignment",
    "unswitch_uniform_conditions",
    "use_inspector_results",
    "vectorize_loops",
    "verify_stores",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
