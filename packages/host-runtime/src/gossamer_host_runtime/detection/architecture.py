"""The architecture of this machine."""

from __future__ import annotations

import os

_ARCHITECTURES = {"AMD64": "x86_64", "arm64": "aarch64"}
"""Other systems' names of the architectures that LLVM supports."""


def architecture() -> str:
    """Return the first part of LLVM's triple: `x86_64`, `aarch64`, ...

    >>> from gossamer_host_runtime import triple
    >>> architecture() == triple().partition("-")[0]
    True
    """
    if hasattr(os, "uname"):
        machine = os.uname().machine
    else:
        import platform  # takes longer to import than a kernel to load

        machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)
