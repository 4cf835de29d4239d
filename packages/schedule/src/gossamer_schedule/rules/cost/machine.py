"""A model of a CPU: the width of its vectors, its registers, and the work that pays for a thread."""

from __future__ import annotations

from gossamer_ir.core.dtypes import DType
from gossamer_ir.interchange.records import Target

DEFAULT_VECTOR_BITS = 512
"""Vector width if the target has none. Narrower machines split such vectors."""


def lanes_of(target: Target, dtype: str) -> int:
    """Return the number of lanes of a vector register; a bool takes a byte of memory."""
    return vector_bits(target) // max(8, DType.parse(dtype).bits)


def vector_bits(target: Target) -> int:
    """Return the bits of a vector register, from the target's option `vector_bits`."""
    text = target.option("vector_bits")
    return int(text) if text.isdecimal() else DEFAULT_VECTOR_BITS


def accumulators_of(target: Target) -> int:
    """Return the number of accumulators: half of the vector registers (32 with 512 bits, else 16)."""
    return 16 if vector_bits(target) >= 512 else 8


FULL_VECTORS_PER_THREAD = 8_192
"""Minimum vectors of work for a thread, about 4 microseconds. With less, waking the thread costs more than it
saves."""


def grain(vectors_per_element: int) -> int:
    """Return the minimum weight for a thread, given the vectors of work per element."""
    return max(1, FULL_VECTORS_PER_THREAD // vectors_per_element)
