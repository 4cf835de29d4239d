"""The view of an array of any package."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer_backend.arguments.array_view import ArrayView, numpy_view
from gossamer_backend.arguments.device import HOST
from gossamer_ir.core.dtypes import SCALARS
from gossamer_ir.errors import ArgumentError


def view_of(value: object, *, name: str, stream: object = None) -> ArrayView:
    """Return the view of an array: of NumPy, or an object with `__array_interface__`, `__dlpack__` or
    `__cuda_array_interface__`, which are tried in this order.

    `name` is that of the argument, for messages. `stream` is the one that is going to use the array: an
    exporter makes it wait for the contents. Raises `ArgumentError` (`kernel.array`) for anything else, also
    for masked arrays: their masks are not part of the memory.

    >>> view = view_of(np.zeros((2, 3), np.float32), name="x")
    >>> view.shape, view.strides, view.device.text, view.is_read_only, view.is_contiguous
    ((2, 3), (12, 4), 'cpu', False, True)
    """
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray):
            raise _array_error(name, value, "Fill its masked elements with its filled method.")
        return numpy_view(value)
    # Numbers of NumPy have an interface, too, but are not arrays that a kernel could write.
    if isinstance(value, np.generic):
        raise _array_error(name, value, "Convert it with numpy.asarray.")
    interface = getattr(value, "__array_interface__", None)
    if isinstance(interface, dict):
        return numpy_view(np.asarray(_Interface(interface, value)))
    if hasattr(value, "__dlpack__"):
        return _exported_view(value, name, stream)
    described = getattr(value, "__cuda_array_interface__", None)
    if isinstance(described, dict):
        return _described_view(value, described, name)
    raise _array_error(name, value, "Convert it with numpy.asarray.")


class _Interface:
    """An object with an array interface and nothing else by which NumPy could read it."""

    def __init__(self, interface: dict[str, Any], owner: object) -> None:
        self.__array_interface__ = interface
        self.owner = owner


def _described_view(value: object, interface: dict[str, Any], name: str) -> ArrayView:
    from gossamer_backend.arguments.cuda_interface import cuda_view  # only few arrays need it

    try:
        return cuda_view(value, interface)
    except BufferError as error:
        raise _array_error(name, value, f"It cannot be read: {error}.") from error


def _exported_view(value: object, name: str, stream: object) -> ArrayView:
    from gossamer_backend.arguments.dlpack import exported_view  # only few arrays are not NumPy's

    try:
        view = exported_view(value, stream=stream)
    except BufferError as error:
        raise _array_error(name, value, f"DLPack cannot export it: {error}.") from error
    stored_as = _storage_dtype(view.dtype) if isinstance(view.dtype, str) else view.dtype
    if view.device != HOST or stored_as is None:  # other dtypes are refused for all parameters
        return view
    interface = {
        "version": 3,
        "shape": view.shape,
        "strides": view.strides,
        "typestr": stored_as.str,
        "data": (view.address, view.is_read_only),
    }
    return view._replace(array=np.asarray(_Interface(interface, view.owner)))


def _storage_dtype(dtype_name: str) -> np.dtype[Any] | None:
    """Return the dtype of NumPy that stores elements of a dtype which it lacks; None if there is none."""
    scalar = SCALARS.get(dtype_name)
    return None if scalar is None or scalar.stored_as is None else np.dtype(scalar.stored_as)


def _array_error(name: str, value: object, hint: str) -> ArgumentError:
    return ArgumentError(
        "kernel.array",
        f"The argument '{name}' has the type '{type(value).__qualname__}'; expected an array.",
        hint=hint,
    )
