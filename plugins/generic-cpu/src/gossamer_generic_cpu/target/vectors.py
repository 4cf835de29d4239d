"""The width and the number of vector registers of CPUs."""

from __future__ import annotations

from gossamer_host_runtime import architecture


def vector_bits(features: frozenset[str]) -> str:
    """Return the width in bits of vector registers for a set of CPU features."""
    if "avx512f" in features:
        return "512"
    return "256" if "avx2" in features else "128"


def vector_registers(bits: int) -> int:
    """Return the number of vector registers of a CPU whose vectors have so many bits: on x86 only AVX-512 has
    32, and NEON and the vector extension of RISC-V have as many."""
    return 16 if architecture() == "x86_64" and bits < 512 else 32
