"""The features of an AArch64 CPU, as Linux tells each process in its auxiliary vector.

LLVM reads `/proc/cpuinfo` instead, which may describe another machine: an emulator of user processes shows
that of its host.

Source: Linux, arch/arm64/include/uapi/asm/hwcap.h.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from gossamer_host_runtime.detection.architecture import architecture
from gossamer_host_runtime.detection.auxiliary_vector import HARDWARE, HARDWARE_2, auxiliary_value

_FEATURES = {
    "fp-armv8": ((HARDWARE, 0),),
    "neon": ((HARDWARE, 1),),
    "crc": ((HARDWARE, 7),),
    "lse": ((HARDWARE, 8),),
    # Scalars, and vectors.
    "fullfp16": ((HARDWARE, 9), (HARDWARE, 10)),
    "rdm": ((HARDWARE, 12),),
    "jsconv": ((HARDWARE, 13),),
    "complxnum": ((HARDWARE, 14),),
    "rcpc": ((HARDWARE, 15),),
    # Exclusive ors of three vectors; LLVM's feature includes SHA-512.
    "sha3": ((HARDWARE, 17), (HARDWARE, 21)),
    "dotprod": ((HARDWARE, 20),),
    "sve": ((HARDWARE, 22),),
    "fp16fml": ((HARDWARE, 23),),
    "lse2": ((HARDWARE, 25),),
    "rcpc-immo": ((HARDWARE, 26),),
    "flagm": ((HARDWARE, 27),),
    "sve2": ((HARDWARE_2, 1),),
    "altnzcv": ((HARDWARE_2, 7),),
    "fptoint": ((HARDWARE_2, 8),),
    "i8mm": ((HARDWARE_2, 13),),
    "bf16": ((HARDWARE_2, 14),),
    "sme": ((HARDWARE_2, 23),),
}
"""The bits of each feature of LLVM that it uses in code without being asked to by an intrinsic."""

_IDENTITY = Path("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1")


def aarch64_features(word_of: Callable[[int], int] | None = None) -> dict[str, bool] | None:
    """Return whether this CPU has each of LLVM's features; None if this is a process of another
    architecture.

    `word_of` returns an entry of the auxiliary vector, by default of this process.

    >>> aarch64_features(lambda entry: 1 << 1 | 1 << 22)["sve"]
    True
    """
    if word_of is None:
        if sys.platform != "linux" or architecture() != "aarch64":
            return None
        word_of = auxiliary_value
    words = {entry: word_of(entry) for entry in (HARDWARE, HARDWARE_2)}
    return {
        name: all(words[entry] >> bit & 1 for entry, bit in bits)
        for name, bits in _FEATURES.items()
    }


def aarch64_identity(file: Path = _IDENTITY) -> str | None:
    """Return the register with the maker and the model of the CPU; None if Linux does not show it."""
    try:
        return file.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None
