"""Runs kernels of other architectures in an emulated process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gossamer_emulation.driver.program import reason_against_emulation
    from gossamer_emulation.emulated_machine import AARCH64, RISCV64, Architecture, EmulatedMachine
    from gossamer_emulation.kernel import emulated_kernel

_HOMES = {
    "AARCH64": "gossamer_emulation.emulated_machine",
    "Architecture": "gossamer_emulation.emulated_machine",
    "EmulatedMachine": "gossamer_emulation.emulated_machine",
    "RISCV64": "gossamer_emulation.emulated_machine",
    "emulated_kernel": "gossamer_emulation.kernel",
    "reason_against_emulation": "gossamer_emulation.driver.program",
}

__all__ = [
    "AARCH64",
    "Architecture",
    "EmulatedMachine",
    "RISCV64",
    "emulated_kernel",
    "reason_against_emulation",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
