"""The passes of `FLAT_PIPELINE` by name; `python -m tools.generate pass_imports` writes this file."""

from __future__ import annotations

from gossamer_lower.pipelines.pipeline_step import PipelineStep

FLAT_STEPS: tuple[PipelineStep, ...] = (
    PipelineStep("lower_vscale", "gossamer_lower.vector.lower_vscale", argument="vscale"),
    PipelineStep("expand_reducers", "gossamer_lower.blocks.expand_reducers", "declared reducers"),
    PipelineStep("lower_blocks", "gossamer_lower.blocks.lower_blocks"),
    PipelineStep("contract_buffers", "gossamer_lower.memory.contract_buffers"),
    PipelineStep("unswitch_uniform_conditions", "gossamer_lower.loops.unswitch_uniform_conditions"),
    PipelineStep("insert_bounds_checks", "gossamer_lower.bounds_checks.insert_bounds_checks"),
    PipelineStep(
        "hoist_bounds_checks", "gossamer_lower.bounds_checks.hoist_bounds_checks", "bounds checks"
    ),
    PipelineStep(
        "peel_last_iteration", "gossamer_lower.loops.peel_last_iteration", "loops to peel"
    ),
    PipelineStep("peel_remainder", "gossamer_lower.loops.peel_remainder"),
    PipelineStep("vectorize_loops", "gossamer_lower.vector.vectorize_loops"),
    PipelineStep("unroll_loops", "gossamer_lower.loops.unroll_loops"),
    PipelineStep(
        "split_vector_buffers", "gossamer_lower.memory.split_vector_buffers", "scalable extents"
    ),
    PipelineStep("eliminate_redundant_masks", "gossamer_lower.vector.eliminate_redundant_masks"),
    PipelineStep("narrow_lanes", "gossamer_lower.vector.narrow_lanes"),
    PipelineStep(
        "combine_lane_reductions",
        "gossamer_lower.vector.combine_lane_reductions",
        "lane reductions",
    ),
    PipelineStep("load_windows", "gossamer_lower.vector.load_windows", "windows"),
    PipelineStep(
        "share_gathers", "gossamer_lower.vector.share_gathers", "gathers of equal indices"
    ),
    PipelineStep("hoist_invariant_loads", "gossamer_lower.vector.hoist_invariant_loads"),
    PipelineStep(
        "branch_on_full_masks", "gossamer_lower.vector.branch_on_full_masks", "masks in variables"
    ),
    PipelineStep("hoist_searches", "gossamer_lower.search.hoist_searches", "searches"),
    PipelineStep("merge_searches", "gossamer_lower.search.merge_searches", "searches"),
    PipelineStep("expand_search", "gossamer_lower.search.expand_search", "searches"),
    PipelineStep("split_index_set", "gossamer_lower.loops.split_index_set"),
    PipelineStep("scan_bits", "gossamer_lower.loops.scan_bits", "bits of words"),
    PipelineStep("outline_parallel", "gossamer_lower.host.outline_parallel"),
    PipelineStep(
        "hoist_allocations", "gossamer_lower.memory.hoist_allocations", "allocations of varied size"
    ),
    PipelineStep("lower_atomics", "gossamer_lower.host.lower_atomics", "atomic loops"),
    PipelineStep(
        "insert_index_array_checks",
        "gossamer_lower.host.insert_index_array_checks",
        "checked index arrays",
    ),
    PipelineStep("unswitch_on_alignment", "gossamer_lower.loops.unswitch_on_alignment"),
    PipelineStep("lower_math", "gossamer_lower.math.lower_math", argument="instructions"),
)
