"""The auxiliary vector, in which Linux tells each process about its CPU."""

from __future__ import annotations

import ctypes

HARDWARE, HARDWARE_2 = 16, 26
"""AT_HWCAP and AT_HWCAP2: bits for the features of the CPU."""


def auxiliary_value(entry: int) -> int:
    """Return an entry of the auxiliary vector of this process; 0 for one that is absent."""
    function = ctypes.CDLL(None).getauxval
    function.argtypes, function.restype = (ctypes.c_ulong,), ctypes.c_ulong
    return int(function(entry))
