"""The passes of `DEVICE_PASSES` by name; `python -m tools.generate pass_imports` writes this file."""

from __future__ import annotations

from gossamer_lower.pipelines.pipeline_step import PipelineStep

DEVICE_STEPS: tuple[PipelineStep, ...] = (
    PipelineStep("pipeline_loops", "gossamer_lower.device.pipeline_loops"),
    PipelineStep(
        "lower_cross_thread_reduction", "gossamer_lower.device.lower_cross_thread_reduction"
    ),
    PipelineStep("verify_stores", "gossamer_lower.device.verify_stores"),
    PipelineStep("split_host_device", "gossamer_lower.device.split_host_device"),
    PipelineStep("merge_shared_memory", "gossamer_lower.device.merge_shared_memory"),
    PipelineStep("insert_sync", "gossamer_lower.device.insert_sync"),
)
