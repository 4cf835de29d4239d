"""Dense operands and outputs: arguments of users, checked and converted for kernels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import copysign, isfinite
from typing import Any

import numpy as np

from gossamer.operator_calls.operands.device_operands import device_view, require_contiguous
from gossamer_backend.internal_api import ArrayView, new_array
from gossamer_formats import Array
from gossamer_formats.internal_api import WIDE_DTYPES, value_array_dtype
from gossamer_ir.core.dtypes import SUM_DTYPES
from gossamer_ir.core.encodings import ENCODINGS
from gossamer_ir.errors import ArgumentError
from gossamer_support.message_texts import either

NATIVE: dict[str, np.dtype[Any]] = {name: np.dtype(name) for name in WIDE_DTYPES}
"""The dtypes of values that are those of results, too, in the byte order of this machine."""

VALUE_ARRAY_DTYPES: dict[str, np.dtype[Any]] = {
    name: value_array_dtype(name) for name in SUM_DTYPES
}
"""The dtypes of NumPy of all operands."""

RESULT_DTYPES: dict[str, np.dtype[Any]] = {**NATIVE, "int32": np.dtype("int32")}
"""The dtypes of results: sums of integers are int32."""


def operand_dtype(name: str, value: Any, *, allowed: tuple[str, ...] = WIDE_DTYPES) -> str | None:
    """Return the dtype of an array, one of those allowed; None for anything else, which `dense_operand`
    refuses once the matrix is known."""
    view = value if isinstance(value, np.ndarray) else device_view(name, value)
    if view is None:
        return None
    for name_of_dtype in allowed:
        dtype = VALUE_ARRAY_DTYPES[name_of_dtype]
        if view.dtype in (dtype, dtype.newbyteorder()):
            return name_of_dtype
    raise ArgumentError(
        "operand.dtype",
        f"'{name}' has the dtype {view.dtype}; expected {either(allowed)}.",
        hint=f"Convert it with {name}.astype('float32').",
    )


def dense_operand(
    name: str,
    value: Any,
    *,
    dtype: str,
    shape: tuple[int | None, ...],
    like: str = "the matrix",
) -> Array:
    """Return a C-contiguous array of the shape (None: any length) and of the dtype, which is that of `like`;
    one of NumPy is copied if necessary."""
    view = device_view(name, value)
    if view is not None:
        _require_dtype(name, view, dtype=dtype, like=like)
        require_shape(name, view, shape=shape)
        require_contiguous(name, view)
        on_device: Array = value
        return on_device
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        raise ArgumentError(
            "operand.kind",
            f"'{name}' has the type '{type(value).__name__}'; expected a NumPy array.",
            hint=f"Convert it with numpy.asarray({name}, dtype='{dtype}').",
        )
    native = VALUE_ARRAY_DTYPES[dtype]
    # Another byte order is converted below, another dtype is not: that would hide a mistake.
    if value.dtype.newbyteorder("=") != native:
        _require_dtype(name, value, dtype=dtype, like=like)
    # Before the copy, which a wrong shape would waste.
    require_shape(name, value, shape=shape)
    # The usual case without a call of NumPy.
    if type(value) is np.ndarray and value.dtype == native and _is_plain(value):
        return value
    return np.require(value, dtype=native, requirements=["C", "A"]).view(np.ndarray)


def _require_dtype(name: str, array: Array | ArrayView, *, dtype: str, like: str) -> None:
    if array.dtype == VALUE_ARRAY_DTYPES[dtype]:
        return
    if dtype in ENCODINGS:
        raise ArgumentError(
            "operand.dtype",
            f"'{name}' has the dtype {array.dtype}, {like} {dtype}; expected its bits, as "
            f"{VALUE_ARRAY_DTYPES[dtype]}.",
        )
    raise ArgumentError(
        "operand.dtype",
        f"'{name}' has the dtype {array.dtype}, {like} {dtype}; expected one dtype.",
        hint=f"Convert {name} with {name}.astype('{dtype}').",
    )


def number_operand(
    name: str, value: Any, dtype: np.dtype[Any], *, expected: str = "a number"
) -> Array:
    """Return a number as an array of one element for the kernel."""
    if not isinstance(value, (int, float, np.floating)):
        raise ArgumentError(
            "operand.kind", f"'{name}' has the type '{type(value).__name__}'; expected {expected}."
        )
    try:
        number = float(value)
    except OverflowError:
        raise ArgumentError(
            "operand.range",
            f"'{name}' is an int that no float64 can represent; expected a number below 1.8e308.",
        ) from None
    return _single(name, number, copysign(1.0, number), dtype)


@lru_cache(maxsize=256)
def _single(name: str, value: float, _sign: float, dtype: np.dtype[Any]) -> Array:
    """Return an array of one number. The sign is part of the key of the cache, since 0.0 == -0.0."""
    # Infinity and nan are what the caller asked for; a finite number must not become infinite.
    if isfinite(value) and abs(value) > float(np.finfo(dtype).max):
        raise ArgumentError(
            "operand.range", f"'{name}' is {value}, which {dtype} cannot represent."
        )
    array = np.array([value], dtype=dtype)
    # The array is shared by all calls with this number.
    array.setflags(write=False)
    return array


def output_array(
    value: Any, *, dtype: str, shape: tuple[int, ...], inputs: Sequence[Array]
) -> tuple[Array, Array]:
    """Return the result object and the array to write to: `out` as it was passed, or a new array."""
    if value is None:
        fresh = new_array(shape, RESULT_DTYPES[dtype])
        return fresh, fresh
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        kind = type(value).__name__
        raise ArgumentError(
            "operand.kind", f"'out' has the type '{kind}'; expected a NumPy array or None."
        )
    if value.dtype != RESULT_DTYPES[dtype]:
        raise ArgumentError(
            "operand.dtype", f"'out' has the dtype {value.dtype}; expected {dtype}."
        )
    require_shape("out", value, shape=shape)
    _require_writable(value)
    for array in inputs:
        if np.may_share_memory(value, array):
            raise ArgumentError(
                "operand.overlap",
                "'out' overlaps an input.",
                hint="Pass a separate array, or omit 'out'.",
            )
    return value, value.view(np.ndarray)


def _is_plain(array: Array) -> bool:
    flags = array.flags
    return flags.c_contiguous and flags.aligned


def _require_writable(out: Array) -> None:
    if not out.flags.writeable:
        raise ArgumentError(
            "operand.read_only", "'out' is read-only.", hint="Pass an array that can be written to."
        )
    if not out.flags.aligned:
        raise ArgumentError(
            "operand.alignment",
            f"'out' does not start at a multiple of {out.itemsize} bytes, the size of its elements.",
            hint=f"Pass numpy.empty({out.shape}, dtype='{out.dtype.name}').",
        )
    if not _is_plain(out):
        raise ArgumentError(
            "operand.contiguity",
            f"'out' has the strides {out.strides}; expected a C-contiguous array.",
            hint=f"Pass numpy.empty({out.shape}, dtype='{out.dtype.name}').",
        )


def require_shape(name: str, array: Array | ArrayView, *, shape: tuple[int | None, ...]) -> None:
    """Raise `ArgumentError` (`operand.shape`) for an array of another shape (None: any length)."""
    fits = array.shape == shape
    if not fits and array.ndim == len(shape):
        pairs = zip(array.shape, shape, strict=True)
        fits = all(wanted is None or size == wanted for size, wanted in pairs)
    if not fits:
        expected = ", ".join("any" if wanted is None else str(wanted) for wanted in shape)
        comma = "," if len(shape) == 1 else ""
        raise ArgumentError(
            "operand.shape", f"'{name}' has the shape {array.shape}; expected ({expected}{comma})."
        )
