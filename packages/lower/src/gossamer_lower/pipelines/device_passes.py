"""The passes that make a flat module an entry of the host and kernels of a device, in the order in which they
run. `passes.py` has all passes, and says how one is added."""

from __future__ import annotations

from collections.abc import Callable

from gossamer_ir.nodes import Module
from gossamer_lower.device.insert_sync import insert_sync
from gossamer_lower.device.lower_cross_thread_reduction import lower_cross_thread_reduction
from gossamer_lower.device.merge_shared_memory import merge_shared_memory
from gossamer_lower.device.pipeline_loops import pipeline_loops
from gossamer_lower.device.split_host_device import split_host_device
from gossamer_lower.device.verify_stores import verify_stores

DEVICE_PASSES: tuple[Callable[[Module], Module], ...] = (
    pipeline_loops,
    lower_cross_thread_reduction,
    verify_stores,
    split_host_device,
    merge_shared_memory,
    insert_sync,
)
"""The passes that `lower_to_device` runs, in this order."""
