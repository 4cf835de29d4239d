"""The features of a CPU, where Linux tells them completely and without LLVM: on AArch64 and RISC-V."""

from __future__ import annotations

from gossamer_host_runtime.detection.architecture import architecture


def linux_features() -> dict[str, bool] | None:
    """Return whether this CPU has each of LLVM's features; None on systems where LLVM detects them."""
    # Imported late: a process has one architecture.
    if architecture() == "aarch64":
        from gossamer_host_runtime.detection.aarch64 import aarch64_features

        return aarch64_features()
    if architecture() == "riscv64":
        from gossamer_host_runtime.detection.riscv64 import riscv64_features

        return riscv64_features()
    return None


def linux_identity() -> str | None:
    """Return what tells this model of a CPU from others; None if Linux does not show it. Only for CPUs with
    `linux_features`."""
    # Imported late: a process has one architecture.
    if architecture() == "aarch64":
        from gossamer_host_runtime.detection.aarch64 import aarch64_identity

        return aarch64_identity()
    from gossamer_host_runtime.detection.riscv64 import riscv64_identity

    return riscv64_identity()
