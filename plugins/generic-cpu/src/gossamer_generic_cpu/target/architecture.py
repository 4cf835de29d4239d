"""The architecture of this machine, and what its features mean for vectors."""

from __future__ import annotations

import os

_ARCHITECTURES = {"AMD64": "x86_64", "arm64": "aarch64"}
"""Other systems' names of the architectures that LLVM knows."""


def architecture() -> str:
    """The first part of LLVM's triple: `x86_64`, `aarch64`, ..."""
    if hasattr(os, "uname"):
        machine = os.uname().machine
    else:
        import platform  # takes longer to import than a kernel to load

        machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)


def vector_bits(features: frozenset[str]) -> str:
    """The width of vector registers that go with such features."""
    if "avx512f" in features:
        return "512"
    return "256" if "avx2" in features else "128"
