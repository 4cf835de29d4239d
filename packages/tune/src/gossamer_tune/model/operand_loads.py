"""The cost of a load of a vector from the rows of a dense operand, by the cache that holds them."""

from __future__ import annotations

from gossamer_ir.machine.hardware_params import HardwareParams

FIRST_CACHE = 32 << 10
"""Bytes of the first-level cache of nearly every CPU; targets do not state it."""

LOAD_CYCLES = (1.25, 1.6, 2.6, 3.4)
"""Cycles for a vector of 64 bytes and its multiply-add, with rows at random in the first, the second, and the
nearer and the farther part of the third level (measured on Zen 4; the prefetchers of an Intel Xeon of the Ice
Lake generation find less of the third level: 1.3, 1.9, 3.5 and 7)."""

MEMORY_CYCLES = 16.0
"""The same for rows in memory, with prefetches (measured on a graph of 170,000 rows, 128 features)."""


def load_cycles(operand_bytes: float, hardware: HardwareParams) -> float:
    """Return the cycles of a load and multiply-add, for rows at random in an operand of this size.

    >>> load_cycles(1 << 14, HardwareParams()), load_cycles(4 << 20, HardwareParams())
    (1.25, 2.6)
    """
    first, second, third, far = LOAD_CYCLES
    if operand_bytes <= FIRST_CACHE:
        return first
    if operand_bytes <= hardware.private_cache // 2:
        return second
    if operand_bytes <= hardware.shared_cache // 4:
        return third
    if operand_bytes <= hardware.shared_cache:
        return far
    # The part of the operand that the cache cannot hold is read from memory.
    missing = 1 - hardware.shared_cache / operand_bytes
    return far + missing * (MEMORY_CYCLES - far)
