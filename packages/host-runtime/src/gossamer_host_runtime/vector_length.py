"""The length of the scalable vectors of this process."""

from __future__ import annotations

import ctypes
import struct
import sys
from functools import cache

from gossamer_host_runtime.detection.architecture import architecture
from gossamer_host_runtime.detection.riscv64 import riscv64_features
from gossamer_host_runtime.loading.mapped_memory import make_executable, map_memory

_PR_SVE_GET_VL = 51
_LENGTH_MASK = 0xFFFF
_READ_VLENB = struct.pack("<II", 0xC2202573, 0x00008067)
"""csrr a0, vlenb; ret: Linux has no call that tells the bytes of a vector of RISC-V."""


@cache
def scalable_vector_bits() -> int | None:
    """Return the length in bits of the scalable vectors of this process (SVE of Arm, V of RISC-V), None if it
    has none.

    >>> scalable_vector_bits() in (None, 128, 256, 512, 1024, 2048)
    True
    """
    lengths = {"aarch64": _sve_bytes, "riscv64": _riscv_bytes}
    if sys.platform != "linux" or architecture() not in lengths:
        return None
    length = lengths[architecture()]()
    return None if length is None else 8 * length


def _sve_bytes() -> int | None:
    # Negative for a CPU or a kernel without SVE. Flags are above the length.
    length = int(ctypes.CDLL(None).prctl(_PR_SVE_GET_VL, 0, 0, 0, 0))
    return None if length < 0 else length & _LENGTH_MASK


def _riscv_bytes() -> int | None:
    features = riscv64_features()
    # Without the extension, the register does not exist, and reading it ends the process.
    if features is None or not features["v"]:
        return None
    address = map_memory(len(_READ_VLENB))
    if address is None:
        return None
    ctypes.memmove(address, _READ_VLENB, len(_READ_VLENB))
    if not make_executable(address, len(_READ_VLENB)):
        return None
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(address)())
