"""Checks of the dtypes and lengths of arrays."""

from __future__ import annotations

from gossamer_formats.value_dtypes import VALUE_DTYPES, dtype_name
from gossamer_ir.errors import FormatError
from gossamer_support.arrays import Array
from gossamer_support.message_texts import amount, either

INDEX_DTYPES = ("int32", "int64")
"""The dtypes of indices among which a tensor chooses. A format that declares a narrower one keeps it."""


def require_vector(name: str, array: Array) -> None:
    """Raise a `FormatError` unless an array has one dimension."""
    if array.ndim != 1:
        dimensions = amount(array.ndim, "dimension")
        raise FormatError("format.dimensions", f"{name} has {dimensions}; expected 1.")


def require_dtype(name: str, array: Array, allowed: tuple[str, ...]) -> None:
    """Raise a `FormatError` unless an array has one of the dtypes, in native byte order."""
    if dtype_name(array.dtype) in allowed:
        return
    raise FormatError(
        "format.dtype",
        f"{name} has the dtype {array.dtype}; expected {either(allowed)}.",
        hint=f"Convert it with {name}.astype({allowed[0]!r}).",
    )


def require_value_dtype(dtype: str, *, allowed: tuple[str, ...] = VALUE_DTYPES) -> None:
    """Raise a `FormatError` unless values may have this dtype."""
    if dtype not in allowed:
        raise FormatError("format.dtype", f"The dtype is {dtype}; expected {either(allowed)}.")


def require_length(name: str, array: Array, length: int, *, reason: str) -> None:
    """Raise a `FormatError` unless an array has as many elements; `reason` says why that many."""
    if array.size != length:
        raise FormatError(
            "format.length",
            f"{name} has {amount(array.size, 'element')}; expected {length}, {reason}.",
        )
