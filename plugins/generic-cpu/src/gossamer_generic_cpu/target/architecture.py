"""The architecture of this machine, and the width of its vectors."""

from __future__ import annotations

import os

_ARCHITECTURES = {"AMD64": "x86_64", "arm64": "aarch64"}
"""Other systems' names of the architectures that LLVM supports."""


def architecture() -> str:
    """Return the first part of LLVM's triple: `x86_64`, `aarch64`, ..."""
    if hasattr(os, "uname"):
        machine = os.uname().machine
    else:
        import platform  # takes longer to import than a kernel to load

        machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)


def vector_bits(features: frozenset[str]) -> str:
    """Return the width in bits of vector registers for a set of CPU features."""
    if "avx512f" in features:
        return "512"
    return "256" if "avx2" in features else "128"


def vector_registers(bits: int) -> int:
    """Return the number of vector registers of a CPU whose vectors have so many bits: on x86 only AVX-512 has
    32, and NEON and the vector extension of RISC-V have as many."""
    return 16 if architecture() == "x86_64" and bits < 512 else 32
