"""Checks of array arguments, one for each property.

Call plans and operators check arrays by code of their own, for speed. The table of
`packages/gossamer/tests/operator_calls/test_array_forms.py` says what each accepts.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import numpy as np

from gossamer_ir.core.dtypes import SCALARS, scalar_of
from gossamer_ir.errors import ArgumentError, UnsupportedError
from gossamer_ir.interchange.records import BufferParam
from gossamer_ir.nodes import Const
from gossamer_ir.support.arrays import Array


def numpy_dtype(param: BufferParam) -> np.dtype[Any]:
    """Return the dtype of the arrays that a parameter accepts: for a dtype that NumPy lacks, the one in
    which its elements are stored.

    >>> for dtype in ("float32", "bfloat16"):
    ...     print(numpy_dtype(BufferParam("x", "X", dtype, (), is_read=True, is_written=False)))
    float32
    uint16
    """
    scalar = scalar_of(param.dtype)
    stored_as = SCALARS[scalar].stored_as
    if scalar != param.dtype or stored_as is None:
        raise UnsupportedError(
            "backend.array_dtype", f"The array '{param.name}' of {param.dtype} has no NumPy dtype."
        )
    return np.dtype(stored_as)


def required_array(param: BufferParam, dtype: np.dtype[Any], *, value: object) -> Array:
    """Return the value as an array that the kernel can use, whatever its shape, or raise `ArgumentError`.

    An array of a dtype that only another package has, such as its `bfloat16`, is viewed as the stored one.
    """
    if not _is_plain_array(value):
        raise _array_error(param.name, value)
    if value.dtype.name == param.dtype != dtype.name:
        value = value.view(dtype)
    # Also another byte order: the kernel reads native numbers.
    if value.dtype != dtype:
        raise ArgumentError(
            "kernel.dtype",
            f"The array '{param.name}' has dtype {value.dtype}; expected {dtype}.",
            hint=f"Convert it with {param.name}.astype('{dtype}').",
        )
    flags = value.flags
    if not flags.c_contiguous:
        raise ArgumentError(
            "kernel.contiguity",
            f"The array '{param.name}' of shape {value.shape} and strides {value.strides} "
            "is not C-contiguous.",
            hint="Copy it with numpy.ascontiguousarray.",
        )
    if not flags.aligned:
        raise ArgumentError(
            "kernel.alignment",
            f"The array '{param.name}' does not start at a multiple of {value.dtype.itemsize} "
            "bytes, the size of its elements.",
            hint="Copy it with its copy method.",
        )
    if param.is_written and not flags.writeable:
        raise ArgumentError(
            "kernel.read_only",
            f"The array '{param.name}' is read-only, and the kernel writes to it.",
            hint="Pass a writable array.",
        )
    return value


def _is_plain_array(value: object) -> TypeGuard[Array]:
    if type(value) is np.ndarray:
        return True
    return isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray)


def _array_error(name: str, value: object) -> ArgumentError:
    kind = type(value).__qualname__
    if isinstance(value, np.ma.MaskedArray):
        hint = "Fill its masked elements with its filled method."
    elif hasattr(value, "__dlpack__") or hasattr(value, "__cuda_array_interface__"):
        hint = "Copy it to the CPU and convert it with numpy.asarray."
    else:
        hint = "Convert it with numpy.asarray."
    return ArgumentError(
        "kernel.array",
        f"The argument '{name}' has the type '{kind}'; expected a NumPy array.",
        hint=hint,
    )


def required_array_shape(param: BufferParam, array: Array, *, shape: tuple[int, ...]) -> Array:
    """Return the array in this shape. It must have the shape, or be flat (or the buffer) and of equal
    size."""
    if array.shape == shape:
        return array
    is_flat = array.ndim != len(shape) and 1 in (array.ndim, len(shape))
    if is_flat and min(shape, default=0) >= 0 and array.size == math.prod(shape):
        return array.reshape(shape)
    raise ArgumentError(
        "kernel.shape",
        f"The array '{param.name}' has shape {array.shape}; expected {shape}{_shape_text(param)}.",
        hint="Pass an array of that shape, or other sizes.",
    )


def _shape_text(param: BufferParam) -> str:
    from gossamer_ir.script import print_expr  # the printer is only needed for this message

    if all(isinstance(size, Const) for size in param.shape):
        return ""
    return f", that is ({', '.join(print_expr(size) for size in param.shape)})"


def _address_of_interface(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


_HEAD_BYTES = object.__basicsize__
"""NumPy's structure of an array begins with the head of all objects, and then has the address."""


_pointer_at = ctypes.c_void_p.from_address


def _address_in_structure(array: Array) -> int:
    return _pointer_at(id(array) + _HEAD_BYTES).value or 0


def _is_in_structure() -> bool:
    """Return whether arrays are structures at the address `id`, as in CPython."""
    probe = np.empty(3, np.uint8)
    is_readable = sys.implementation.name == "cpython"
    return is_readable and _address_in_structure(probe[1:]) == _address_of_interface(probe) + 1


# Takes a sixth of the time of the array interface.
address: Callable[[Array], int] = (
    _address_in_structure if _is_in_structure() else _address_of_interface
)
"""Returns the address of the first element of an array."""


def require_no_overlap(
    params: Sequence[BufferParam], arrays: Sequence[Array], *, addresses: Sequence[int]
) -> None:
    """Raise `ArgumentError` if an array that is written shares memory with another one."""
    for param, array, start in zip(params, arrays, addresses, strict=True):
        end = start + array.nbytes
        if not param.is_written or start == end:
            continue
        for other, array_of_other, other_start in zip(params, arrays, addresses, strict=True):
            if other is param or not start < other_start + array_of_other.nbytes:
                continue
            if other_start < end and array_of_other.nbytes:
                raise ArgumentError(
                    "kernel.overlap",
                    f"The array '{param.name}', which is written, shares memory with "
                    f"'{other.name}'.",
                    hint="Pass a separate array for the output.",
                )
