"""What rules know of a CPU: the width of its vectors and when a second thread pays."""

from __future__ import annotations

from gossamer_ir.core.dtypes import DType
from gossamer_ir.interchange.records import Target

DEFAULT_VECTOR_BITS = 512
"""Where a target does not say: narrower machines split such vectors."""


def lanes_of(target: Target, dtype: str) -> int:
    """Lanes of one vector register; a bool takes a byte of memory."""
    return vector_bits(target) // max(8, DType.parse(dtype).bits)


def vector_bits(target: Target) -> int:
    """Bits of a vector register, from the target's option `vector_bits`."""
    text = target.option("vector_bits")
    return int(text) if text.isdecimal() else DEFAULT_VECTOR_BITS


def accumulators_of(target: Target) -> int:
    """Vectors that may be accumulated at once: half of the registers (32 with 512 bits, else 16)."""
    return 16 if vector_bits(target) >= 512 else 8


FULL_VECTORS_PER_THREAD = 8_192
"""Vectors of work below which waking a thread costs more than it saves, about 4 microseconds."""


def grain(vectors_per_element: int) -> int:
    """The weight that pays for a thread, where each element costs so many vectors."""
    return max(1, FULL_VECTORS_PER_THREAD // vectors_per_element)
