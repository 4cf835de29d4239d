"""Checks of array arguments, one for each property.

Call plans and operators check arrays by code of their own, for speed. The table of
`packages/gossamer/tests/operator_calls/test_array_forms.py` says what each accepts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer_backend.arguments.array_view import ArrayView
from gossamer_backend.arguments.device import HOST, Device
from gossamer_backend.arguments.view_of import view_of
from gossamer_ir.core.dtypes import SCALARS, scalar_of
from gossamer_ir.errors import ArgumentError, UnsupportedError
from gossamer_ir.interchange.records import BufferParam
from gossamer_ir.nodes import Const


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


def required_view(
    param: BufferParam, dtype: np.dtype[Any], *, value: object, device: Device, stream: object
) -> ArrayView:
    """Return the view of a value that a kernel on a device can use, whatever its shape, or raise
    `ArgumentError`. `stream` is that of the call.

    An array of a dtype that NumPy lacks, such as another package's `bfloat16`, is viewed as the stored one.
    """
    view = view_of(value, name=param.name, stream=stream)
    if view.device != device:
        raise _device_error(param.name, view.device, expected=device)
    # Also another byte order: the kernel reads native numbers.
    if view.dtype is not dtype and (isinstance(view.dtype, str) or view.dtype != dtype):
        view = _as_stored(param, dtype, view)
    if not view.is_contiguous:
        raise ArgumentError(
            "kernel.contiguity",
            f"The array '{param.name}' of shape {view.shape} and strides {view.strides} "
            "is not C-contiguous.",
            hint="Copy it with numpy.ascontiguousarray.",
        )
    if view.address % dtype.alignment and view.size:
        raise ArgumentError(
            "kernel.alignment",
            f"The array '{param.name}' does not start at a multiple of {dtype.alignment} "
            "bytes, the alignment of its elements.",
            hint="Copy it with its copy method.",
        )
    if param.is_written and view.is_read_only:
        raise ArgumentError(
            "kernel.read_only",
            f"The array '{param.name}' is read-only, and the kernel writes to it.",
            hint="Pass a writable array.",
        )
    return view


def _as_stored(param: BufferParam, dtype: np.dtype[Any], view: ArrayView) -> ArrayView:
    """Return a view whose elements have the name of the parameter's dtype, which NumPy lacks, as one of the
    dtype in which they are stored."""
    if str(view.dtype) == param.dtype != dtype.name:
        array = view.array.view(dtype) if view.device == HOST else view.array
        return view._replace(array=array, dtype=dtype)
    raise ArgumentError(
        "kernel.dtype",
        f"The array '{param.name}' has dtype {view.dtype}; expected {dtype}.",
        hint=f"Convert it with {param.name}.astype('{dtype}').",
    )


def _device_error(name: str, device: Device, *, expected: Device) -> ArgumentError:
    return ArgumentError(
        "kernel.device",
        f"The array '{name}' is on the device '{device.text}', and the kernel runs on '{expected.text}'.",
        hint="Copy it to that device." if expected != HOST else "Copy it to the CPU.",
    )


def required_view_shape(
    param: BufferParam, view: ArrayView, *, shape: tuple[int, ...]
) -> ArrayView:
    """Return the view in this shape. It must have the shape, or be flat (or the buffer) and of equal size."""
    if view.shape == shape:
        return view
    is_flat = view.ndim != len(shape) and 1 in (view.ndim, len(shape))
    if is_flat and min(shape, default=0) >= 0 and view.size == math.prod(shape):
        return view.reshape(shape)
    raise ArgumentError(
        "kernel.shape",
        f"The array '{param.name}' has shape {view.shape}; expected {shape}{_shape_text(param)}.",
        hint="Pass an array of that shape, or other sizes.",
    )


def _shape_text(param: BufferParam) -> str:
    from gossamer_ir.script import print_expr  # the printer is only needed for this message

    if all(isinstance(size, Const) for size in param.shape):
        return ""
    return f", that is ({', '.join(print_expr(size) for size in param.shape)})"


def require_no_overlap(params: Sequence[BufferParam], views: Sequence[ArrayView]) -> None:
    """Raise `ArgumentError` if an array that is written shares memory with another one."""
    ranges = [(view.address, view.address + view.nbytes) for view in views]
    for param, (start, end) in zip(params, ranges, strict=True):
        if not param.is_written or start == end:
            continue
        for other, (other_start, other_end) in zip(params, ranges, strict=True):
            is_apart = other is param or other_start == other_end
            if not is_apart and start < other_end and other_start < end:
                raise ArgumentError(
                    "kernel.overlap",
                    f"The array '{param.name}', which is written, shares memory with "
                    f"'{other.name}'.",
                    hint="Pass a separate array for the output.",
                )
