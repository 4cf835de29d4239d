"""The representation of values of each dtype: NumPy scalars, and 1-D NumPy arrays for vectors.

NumPy has no bfloat16: its values are float32, rounded to bfloat16 after every operation, and its
arrays are uint16, the upper halves of the float32 patterns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from gossamer_ir.core.bfloat16 import decode_bfloat16, encode_bfloat16, round_bfloat16
from gossamer_ir.core.constants import value_of
from gossamer_ir.core.dtypes import DType
from gossamer_ir.interpret.interpreter_errors import AllocationFailed
from gossamer_ir.nodes import Const

Array: TypeAlias = npt.NDArray[Any]

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
# Fills uninitialized integers, as malloc debuggers do: it is neither 0, 1 nor -1, and out of bounds as an
# index.
_PATTERN = 0xA5


@lru_cache(maxsize=256)
def numpy_type(dtype: str) -> Any:
    """Return the NumPy scalar type for values of a dtype; for vectors, of their lanes."""
    return _SCALARS[DType.parse(dtype).scalar]


def storage_type(dtype: str) -> np.dtype[Any]:
    """Return the NumPy dtype of arrays that store elements of a dtype."""
    return np.dtype(np.uint16 if is_bfloat(dtype) else numpy_type(dtype))


def is_vector(dtype: str) -> bool:
    """Return whether the dtype is a vector."""
    return DType.parse(dtype).is_vector


def is_bfloat(dtype: str) -> bool:
    """Return whether the scalar or the lanes are bfloat16."""
    return DType.parse(dtype).kind == "bfloat"


def constant_value(const: Const) -> Any:
    """Return a constant as a value."""
    return numpy_type(const.dtype)(value_of(const))


def decoded(stored: Any, dtype: str) -> Any:
    """Return the values of the elements of an array of a dtype."""
    return decode_bfloat16(stored) if is_bfloat(dtype) else stored


def encoded(value: Any, dtype: str) -> Any:
    """Return the elements of an array of a dtype for values."""
    return encode_bfloat16(value) if is_bfloat(dtype) else value


def with_rounding(dtype: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its result rounded to bfloat16 if that is the dtype; NumPy rounds to
    others."""
    if not is_bfloat(dtype):
        return function
    return lambda *args: round_bfloat16(function(*args))


def convert_value(value: Any, dtype: str) -> Any:
    """Return a value or vector converted to another dtype.

    Floats become integers by truncation, with saturation; integers wrap; bools compare with 0.
    """
    if is_bfloat(dtype):
        return round_bfloat16(value.astype(np.float64))
    target = numpy_type(dtype)
    if value.dtype.kind == "f" and np.dtype(target).kind in "iu":
        return _saturated(value, target)
    return value.astype(target)


def _saturated(value: Any, target: Any) -> Any:
    """Return floats converted to integers: rounded toward zero and clamped to the type's range; 0 for
    NaN."""
    limits = np.iinfo(target)
    wide = np.trunc(np.asarray(value, np.float64))
    # A limit such as 2**63 - 1 is not a float64, and its float64 is one too large: every smaller one fits.
    low, high = wide <= float(limits.min), wide >= float(limits.max)
    fits = np.where(low | high | np.isnan(wide), 0.0, wide).astype(target)
    edges = np.where(low, limits.min, np.where(high, limits.max, fits)).astype(target)
    return np.where(low | high, edges, fits).astype(target)[()]


def garbage_array(shape: tuple[int, ...], dtype: str) -> Array:
    """Return a new array filled with garbage, on which no correct program depends: NaN, or a pattern of bits.

    Raises `AllocationFailed` if there is not enough memory.
    """
    try:
        return _garbage(shape, dtype)
    except (MemoryError, ValueError) as error:  # ValueError: more elements than NumPy supports
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
