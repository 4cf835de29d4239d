"""bfloat16 for NumPy, which does not have it: values are float32, and stored elements are uint16."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

# A bfloat16 is the upper half of a float32.
_HALF = np.uint32(16)


def round_bfloat16(value: Any) -> Any:
    """Return float32 or float64 values rounded once to the nearest bfloat16, ties to even."""
    wide = _to_odd_float32(value)
    bits = wide.view(np.uint32)
    up = np.uint32(0x7FFF) + ((bits >> _HALF) & np.uint32(1))
    rounded = np.asarray((bits + up) & np.uint32(0xFFFF0000), np.uint32).view(np.float32)
    return np.where(np.isnan(wide), np.float32(np.nan), rounded)[()]


def _to_odd_float32(value: Any) -> npt.NDArray[np.float32]:
    """Return the value as float32, rounded to odd: an inexact result is truncated and its last bit set.

    Rounding it again, to bfloat16, then gives the same result as rounding the value once.
    """
    exact = np.asarray(value)
    narrow = np.asarray(exact, np.float32)
    back = np.asarray(narrow, np.float64)
    bits = narrow.view(np.uint32)
    truncated = np.where(np.abs(back) > np.abs(exact), bits - np.uint32(1), bits) | np.uint32(1)
    is_exact = (back == exact) | np.isnan(back)
    return np.asarray(np.where(is_exact, bits, truncated), np.uint32).view(np.float32)


def decode_bfloat16(stored: Any) -> Any:
    """Return the values of elements that are stored as uint16."""
    return np.asarray(np.asarray(stored, np.uint32) << _HALF, np.uint32).view(np.float32)[()]


def encode_bfloat16(value: Any) -> Any:
    """Return the uint16 storage of values that have been rounded to bfloat16."""
    return (np.asarray(value, np.float32).view(np.uint32) >> _HALF).astype(np.uint16)[()]
