"""The features of an AArch64 CPU, as Linux tells each process in its auxiliary vector.

LLVM reads `/proc/cpuinfo` instead, which may describe another machine: an emulator of user processes shows
that of its host.

Source: Linux, arch/arm64/include/uapi/asm/hwcap.h and Documentation/arch/arm64/sve.rst.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from gossamer_host_runtime.detection.architecture import architecture

_AT_HWCAP, _AT_HWCAP2 = 16, 26
_PR_SVE_GET_VL = 51
_LENGTH_MASK = 0xFFFF

_FEATURES = {
    "fp-armv8": ((_AT_HWCAP, 0),),
    "neon": ((_AT_HWCAP, 1),),
    "crc": ((_AT_HWCAP, 7),),
    "lse": ((_AT_HWCAP, 8),),
    # Scalars, and vectors.
    "fullfp16": ((_AT_HWCAP, 9), (_AT_HWCAP, 10)),
    "rdm": ((_AT_HWCAP, 12),),
    "jsconv": ((_AT_HWCAP, 13),),
    "complxnum": ((_AT_HWCAP, 14),),
    "rcpc": ((_AT_HWCAP, 15),),
    # Exclusive ors of three vectors; LLVM's feature includes SHA-512.
    "sha3": ((_AT_HWCAP, 17), (_AT_HWCAP, 21)),
    "dotprod": ((_AT_HWCAP, 20),),
    "sve": ((_AT_HWCAP, 22),),
    "fp16fml": ((_AT_HWCAP, 23),),
    "lse2": ((_AT_HWCAP, 25),),
    "rcpc-immo": ((_AT_HWCAP, 26),),
    "flagm": ((_AT_HWCAP, 27),),
    "sve2": ((_AT_HWCAP2, 1),),
    "altnzcv": ((_AT_HWCAP2, 7),),
    "fptoint": ((_AT_HWCAP2, 8),),
    "i8mm": ((_AT_HWCAP2, 13),),
    "bf16": ((_AT_HWCAP2, 14),),
    "sme": ((_AT_HWCAP2, 23),),
}
"""The bits of each feature of LLVM that it uses in code without being asked to by an intrinsic."""

_IDENTITY = Path("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1")


def aarch64_features(word_of: Callable[[int], int] | None = None) -> dict[str, bool] | None:
    """Return whether this CPU has each of LLVM's features; None if this process has no auxiliary vector of
    AArch64.

    `word_of` returns an entry of the auxiliary vector, by default of this process.

    >>> aarch64_features(lambda entry: 1 << 1 | 1 << 22)["sve"]
    True
    """
    read = word_of or _auxiliary_value()
    if read is None:
        return None
    words = {entry: read(entry) for entry in (_AT_HWCAP, _AT_HWCAP2)}
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


@cache
def sve_vector_bits() -> int | None:
    """Return the length in bits of the scalable vectors (SVE) of this process, None if it has none.

    >>> sve_vector_bits() in (None, 128, 256, 512, 1024, 2048)
    True
    """
    if sys.platform != "linux" or architecture() != "aarch64":
        return None
    # Negative for a CPU or a kernel without SVE. Flags are above the length in bytes.
    length = int(ctypes.CDLL(None).prctl(_PR_SVE_GET_VL, 0, 0, 0, 0))
    return None if length < 0 else 8 * (length & _LENGTH_MASK)


def _auxiliary_value() -> Callable[[int], int] | None:
    """Return the function of the C library that returns an entry of the auxiliary vector."""
    if sys.platform != "linux" or architecture() != "aarch64":
        return None
    function = ctypes.CDLL(None).getauxval
    function.argtypes, function.restype = (ctypes.c_ulong,), ctypes.c_ulong
    return lambda entry: int(function(entry))
