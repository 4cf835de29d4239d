"""How values of each dtype are held: scalars as NumPy scalars, vectors as 1-D NumPy arrays.

NumPy has no bfloat16: its values are float32, rounded to bfloat16 after every operation, and its
arrays are uint16, the upper halves of the float32 patterns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gossamer_ir.core.constants import value_of
from gossamer_ir.core.dtypes import DType
from gossamer_ir.interpret.errors import AllocationFailed
from gossamer_ir.nodes import Const

Array = npt.NDArray[Any]

_SCALARS: dict[str, Any] = {
    "bool": np.bool_,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
    "float16": np.float16,
    "bfloat16": np.float32,
    "float32": np.float32,
    "float64": np.float64,
}
_PATTERN = 0xA5
_HALF = np.uint32(16)


@lru_cache(maxsize=256)
def value_type(dtype: str) -> Any:
    """The NumPy scalar type of values (of the lanes) of a dtype."""
    return _SCALARS[DType.parse(dtype).scalar]


def storage_type(dtype: str) -> np.dtype[Any]:
    """The NumPy dtype of an array that holds elements of a dtype."""
    return np.dtype(np.uint16 if is_bfloat(dtype) else value_type(dtype))


def is_vector(dtype: str) -> bool:
    """Whether values of a dtype have lanes."""
    return DType.parse(dtype).is_vector


def is_bfloat(dtype: str) -> bool:
    """Whether the lanes of a dtype are bfloat16."""
    return DType.parse(dtype).kind == "bfloat"


def constant_value(const: Const) -> Any:
    """A constant as a value."""
    return value_type(const.dtype)(value_of(const))


def round_bfloat16(value: Any) -> Any:
    """Float32 or float64 values rounded once to the nearest bfloat16, ties to even."""
    wide = _to_odd_float32(value)
    bits = wide.view(np.uint32)
    up = np.uint32(0x7FFF) + ((bits >> _HALF) & np.uint32(1))
    rounded = np.asarray((bits + up) & np.uint32(0xFFFF0000), np.uint32).view(np.float32)
    return np.where(np.isnan(wide), np.float32(np.nan), rounded)[()]


def _to_odd_float32(value: Any) -> Array:
    """As float32; an inexact result gets an odd last bit, so that rounding it again is exact."""
    exact = np.asarray(value)
    narrow = np.asarray(exact, np.float32)
    back = np.asarray(narrow, np.float64)
    bits = narrow.view(np.uint32)
    truncated = np.where(np.abs(back) > np.abs(exact), bits - np.uint32(1), bits) | np.uint32(1)
    is_exact = (back == exact) | np.isnan(back)
    return np.asarray(np.where(is_exact, bits, truncated), np.uint32).view(np.float32)


def decode_bfloat16(stored: Any) -> Any:
    """The values of uint16 storage."""
    return np.asarray(np.asarray(stored, np.uint32) << _HALF, np.uint32).view(np.float32)[()]


def encode_bfloat16(value: Any) -> Any:
    """The uint16 storage of values that are rounded already."""
    return (np.asarray(value, np.float32).view(np.uint32) >> _HALF).astype(np.uint16)[()]


def decoded(stored: Any, dtype: str) -> Any:
    """The values of what an array of a dtype holds."""
    return decode_bfloat16(stored) if is_bfloat(dtype) else stored


def encoded(value: Any, dtype: str) -> Any:
    """What an array of a dtype holds for values."""
    return encode_bfloat16(value) if is_bfloat(dtype) else value


def rounding(dtype: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its result rounded to dtype, where NumPy does not round to it itself."""
    if not is_bfloat(dtype):
        return function
    return lambda *args: round_bfloat16(function(*args))


def convert(value: Any, dtype: str) -> Any:
    """A value (or vector) as another dtype: floats truncate and saturate, integers wrap, bools
    compare with 0."""
    if is_bfloat(dtype):
        return round_bfloat16(value.astype(np.float64))
    target = value_type(dtype)
    if value.dtype.kind == "f" and np.dtype(target).kind in "iu":
        return _saturated(value, target)
    return value.astype(target)


def _saturated(value: Any, target: Any) -> Any:
    """Floats as integers: towards zero, the nearest one of the type, 0 for NaN."""
    limits = np.iinfo(target)
    wide = np.trunc(np.asarray(value, np.float64))
    # The limit itself may be no float64: below it, every float64 fits.
    low, high = wide <= float(limits.min), wide >= float(limits.max)
    fits = np.where(low | high | np.isnan(wide), 0.0, wide).astype(target)
    edges = np.where(low, limits.min, np.where(high, limits.max, fits)).astype(target)
    return np.where(low | high, edges, fits).astype(target)[()]


def garbage(shape: tuple[int, ...], dtype: str) -> Array:
    """A fresh array whose content no correct program depends on: NaN, or a pattern of bits.

    Raises `AllocationFailed` where there is not so much memory.
    """
    try:
        return _garbage(shape, dtype)
    except (MemoryError, ValueError) as error:  # ValueError: more than NumPy can count
        raise AllocationFailed(shape, math.prod(shape) * storage_type(dtype).itemsize) from error


def _garbage(shape: tuple[int, ...], dtype: str) -> Array:
    storage = storage_type(dtype)
    if dtype == "bfloat16":
        return np.full(shape, encode_bfloat16(np.float32(np.nan)), storage)
    if storage.kind == "f":
        return np.full(shape, np.nan, storage)
    array = np.empty(shape, storage)
    array.view(np.uint8)[...] = 1 if storage.kind == "b" else _PATTERN
    return array
