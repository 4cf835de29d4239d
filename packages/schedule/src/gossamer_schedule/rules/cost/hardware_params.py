"""The work that pays for a thread, and the model of the CPU from which rules derive thresholds."""

from __future__ import annotations

from gossamer_ir.interchange.hardware_params import HardwareParams, hardware_params

__all__ = ["FULL_VECTORS_PER_THREAD", "HardwareParams", "grain", "hardware_params"]

FULL_VECTORS_PER_THREAD = 8_192
"""Minimum vectors of work for a thread, about 4 microseconds. With less, waking the thread costs more than it
saves."""


def grain(vectors_per_element: int) -> int:
    """Return the minimum weight for a thread, given the vectors of work per element."""
    return max(1, FULL_VECTORS_PER_THREAD // vectors_per_element)
