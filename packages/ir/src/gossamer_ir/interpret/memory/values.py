"""The representation of values of each dtype: NumPy scalars, and 1-D NumPy arrays for vectors.

Values of a dtype that NumPy lacks, such as bfloat16, have the dtype in which it is computed, and are rounded
after every operation. Its arrays are those of its encoding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from gossamer_ir.core.constants import value_of
from gossamer_ir.core.dtypes import SCALARS, DType, scalar_of
from gossamer_ir.core.encodings import encoding_of
from gossamer_ir.interpret.interpreter_errors import AllocationFailed
from gossamer_ir.nodes import Const
from gossamer_support.arrays import Array

# Fills uninitialized integers, as malloc debuggers do: it is neither 0, 1 nor -1,
# and out of bounds as an index.
_PATTERN = 0xA5


@lru_cache(maxsize=256)
def numpy_type(dtype: str) -> Any:
    """Return the NumPy scalar type for values of a dtype; for vectors, of their lanes."""
    if encoding_of(dtype) is None:
        return storage_type(dtype).type
    return np.dtype(DType.parse(dtype).computed_in).type


def storage_type(dtype: str) -> np.dtype[Any]:
    """Return the NumPy dtype of arrays that store elements of a dtype."""
    stored_as = SCALARS[scalar_of(dtype)].stored_as
    assert stored_as is not None, dtype
    return np.dtype(stored_as)


def constant_value(const: Const) -> Any:
    """Return a constant as a value."""
    return numpy_type(const.dtype)(value_of(const))


def decode_elements(stored: Any, dtype: str) -> Any:
    """Return the values of the elements of an array of a dtype."""
    encoding = encoding_of(dtype)
    return stored if encoding is None else encoding.decode(stored)


def encode_elements(value: Any, dtype: str) -> Any:
    """Return the elements of an array of a dtype for values."""
    encoding = encoding_of(dtype)
    return value if encoding is None else encoding.encode(value)


def with_rounding(dtype: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its result rounded if NumPy lacks the dtype; NumPy rounds to others."""
    encoding = encoding_of(dtype)
    if encoding is None:
        return function
    return lambda *args: encoding.round(function(*args))


@lru_cache(maxsize=1024)
def conversion(source: str, dtype: str) -> Callable[[Any], Any]:
    """Return the function that converts values and vectors of a dtype to another one.

    Floats become integers by truncation, with saturation; integers wrap; bools compare with 0.
    """
    encoding = encoding_of(dtype)
    if encoding is not None:
        return lambda value: encoding.round(value.astype(np.float64))
    made, to = numpy_type(dtype), DType.parse(dtype)
    if DType.parse(source).is_float and to.is_integer:
        return lambda value: _saturate(value, made)
    if not to.is_vector and np.can_cast(numpy_type(source), made):
        # For scalars, as nearly all indices are, the constructor takes half the time of `astype`.
        return made  # type: ignore[no-any-return]  # a class
    return lambda value: value.astype(made)


def _saturate(value: Any, dtype: Any) -> Any:
    """Return floats converted to integers: rounded toward zero and clamped to the type's range; 0 for
    NaN."""
    limits = np.iinfo(dtype)
    wide = np.trunc(np.asarray(value, np.float64))
    # A limit such as 2**63 - 1 is not a float64, and its float64 is one too large: every smaller one fits.
    low, high = wide <= float(limits.min), wide >= float(limits.max)
    fits = np.where(low | high | np.isnan(wide), 0.0, wide).astype(dtype)
    edges = np.where(low, limits.min, np.where(high, limits.max, fits)).astype(dtype)
    return np.where(low | high, edges, fits).astype(dtype)[()]


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
    if DType.parse(dtype).is_float:
        return np.full(shape, encode_elements(numpy_type(dtype)(np.nan), dtype), storage)
    array = np.empty(shape, storage)
    array.view(np.uint8)[...] = 1 if storage.kind == "b" else _PATTERN
    return array
