"""The features of a CPU, where Linux tells them completely and without LLVM: on AArch64 and RISC-V."""

from __future__ import annotations

from gossamer_host_runtime.detection.aarch64 import aarch64_features, aarch64_identity
from gossamer_host_runtime.detection.riscv64 import riscv64_features, riscv64_identity


def linux_features() -> dict[str, bool] | None:
    """Return whether this CPU has each of LLVM's features; None on systems of which LLVM is asked."""
    arm = aarch64_features()
    return riscv64_features() if arm is None else arm


def linux_identity() -> str | None:
    """Return what tells this model of a CPU from others; None if Linux does not show it. Only for CPUs with
    `linux_features`."""
    return riscv64_identity() if aarch64_features() is None else aarch64_identity()
