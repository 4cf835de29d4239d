"""The cost of a load of one element of a dense vector, by the cache that holds the vector."""

from __future__ import annotations

from gossamer_ir.machine.hardware_params import HardwareParams
from gossamer_tune.model.operand_loads import FIRST_CACHE

LATE_CYCLES = (0.0, 0.3, 1.5, 5.0)
"""Cycles that a load takes longer than one from the first-level cache while others are under way, if the
vector is in the first, the second or the third level or in memory."""

EXPOSED_CYCLES = (0.0, 12.0, 25.0, 60.0)
"""Cycles for which nothing else is under way if a load follows a mispredicted branch (measured on graphs,
Sapphire Rapids: 0 in the first level, 9 to 23 in the second)."""


def level_of(vector_bytes: float, hardware: HardwareParams) -> int:
    """Return the level of the caches that holds a vector of this size: 0 for the first one, 3 for memory.

    >>> level_of(1 << 14, HardwareParams()), level_of(4 << 20, HardwareParams())
    (0, 2)
    """
    sizes = (FIRST_CACHE, hardware.private_cache, hardware.shared_cache)
    return sum(vector_bytes > size for size in sizes)
