"""The features of a RISC-V CPU, as Linux tells each process.

The auxiliary vector has a bit for each extension of one letter, and a system call (Linux 6.4) tells the
others. LLVM uses that system call only, and detects nothing where it is absent.

Source: Linux, arch/riscv/include/uapi/asm/hwcap.h and Documentation/arch/riscv/hwprobe.rst.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

from gossamer_host_runtime.detection.architecture import architecture
from gossamer_host_runtime.detection.auxiliary_vector import HARDWARE, auxiliary_value

RISCV64_BASE = frozenset("acdfm")
"""The extensions that every system has for which Debian's and other distributions' programs are compiled."""

_LETTERS = (*sorted(RISCV64_BASE), "v")
_PROBED = {"zba": 3, "zbb": 4, "zbs": 5, "zvbb": 17, "zvfh": 30, "zicond": 35}
"""The bits of extensions with longer names that LLVM uses without being asked to by an intrinsic."""

_HARDWARE_PROBE = 258
_VENDOR, _ARCHITECTURE, _IMPLEMENTATION, _EXTENSIONS = 0, 1, 2, 4


class _Pair(ctypes.Structure):
    _fields_ = (("key", ctypes.c_int64), ("value", ctypes.c_uint64))


def riscv64_features(
    letters: int | None = None, probe: Callable[[int], int] | None = None
) -> dict[str, bool] | None:
    """Return whether this CPU has each of LLVM's features; None if this is a process of another
    architecture.

    `letters` are the bits of the auxiliary vector, by default of this process, and `probe` returns the bits
    for a key of the system call.

    >>> riscv64_features(1 << 21, lambda key: 0)["v"]
    True
    """
    if letters is None:
        if not _is_riscv64():
            return None
        letters = auxiliary_value(HARDWARE)
    extensions = (probe or _probe_key)(_EXTENSIONS)
    by_letter = {
        name: name in RISCV64_BASE or bool(letters >> ord(name) - ord("a") & 1) for name in _LETTERS
    }
    return by_letter | {name: bool(extensions >> bit & 1) for name, bit in _PROBED.items()}


def riscv64_identity(probe: Callable[[int], int] | None = None) -> str:
    """Return the numbers of the maker, the architecture and the implementation of the CPU; zeros if Linux
    does not tell them.

    >>> riscv64_identity(lambda key: 16 + key)
    '0x10 0x11 0x12'
    """
    keys = (_VENDOR, _ARCHITECTURE, _IMPLEMENTATION)
    return " ".join(hex((probe or _probe_key)(key)) for key in keys)


def _probe_key(key: int) -> int:
    """Return the value of a key for all CPUs; 0 if it is unknown, or the system call is absent."""
    pair = _Pair(key, 0)
    # No set of CPUs: all that are online.
    arguments = (ctypes.byref(pair), ctypes.c_size_t(1), ctypes.c_size_t(0), None, 0)
    failed = ctypes.CDLL(None).syscall(ctypes.c_long(_HARDWARE_PROBE), *arguments)
    return 0 if failed or pair.key != key else int(pair.value)


def _is_riscv64() -> bool:
    return sys.platform == "linux" and architecture() == "riscv64"
