"""The width and the number of vector registers of CPUs."""

from __future__ import annotations


def vector_bits(features: frozenset[str]) -> str:
    """Return the width in bits of vector registers for a set of CPU features."""
    if "avx512f" in features:
        return "512"
    return "256" if "avx2" in features else "128"


_FLOAT_REGISTER_BITS = 32 * 32
"""The bits of the values of float32 in the 32 registers for floats that RISC-V has."""


def vector_registers(bits: int, *, architecture: str, features: frozenset[str]) -> int:
    """Return the number of vector registers of a CPU for its bits of vectors: 32 with AVX-512, NEON and the
    vector extension of RISC-V, and 16 in other cases on x86.

    Without this extension LLVM takes a register for floats for each lane, so that they hold fewer vectors.
    """
    if architecture == "x86_64" and bits < 512:
        return 16
    if architecture == "riscv64" and "v" not in features:
        return _FLOAT_REGISTER_BITS // bits
    return 32
