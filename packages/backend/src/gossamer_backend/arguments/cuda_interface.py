"""Views of arrays that objects describe by `__cuda_array_interface__`, which PyCUDA and Numba have.

The interface does not say on which GPU an array is. Its number is that of the object's attribute `device`, an
integer or an object with an `id`, and 0 without one. Source: version 3 of the CUDA array interface, in the
documentation of Numba.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gossamer_backend.arguments.array_view import ArrayView, contiguous_strides, is_stored_by_rows
from gossamer_backend.arguments.device import Device

CUDA = 2
"""The kind of the device, in the numbers of DLPack."""

MAX_INTERFACE_VERSION = 3
"""The latest version that is read; earlier ones have no entry `stream`."""


def cuda_view(exporter: Any, interface: Mapping[str, Any]) -> ArrayView:
    """Return the view of an object with this interface. Raise `BufferError` if it has a mask, or the
    interface is not valid.

    >>> from types import SimpleNamespace
    >>> interface = {"shape": (2, 3), "typestr": "<f4", "data": (4096, False), "version": 3, "stream": 7}
    >>> view = cuda_view(SimpleNamespace(device=1), interface)
    >>> view.device.text, view.strides, view.stream
    ('cuda:1', (12, 4), 7)
    """
    if interface.get("mask") is not None:
        raise BufferError("arrays with a mask are not supported")
    try:
        shape = tuple(int(size) for size in interface["shape"])
        dtype = np.dtype(interface["typestr"])
        address, is_read_only = interface["data"]
        version = int(interface["version"])
        steps = interface.get("strides")
        strides = contiguous_strides(shape, dtype.itemsize) if steps is None else tuple(steps)
    except (KeyError, TypeError, ValueError) as error:
        raise BufferError(f"its __cuda_array_interface__ is not valid ({error!r})") from error
    if version > MAX_INTERFACE_VERSION:
        raise BufferError(f"version {version} of __cuda_array_interface__ is not supported")
    if len(strides) != len(shape):
        raise BufferError("its __cuda_array_interface__ has a stride too many or too few")
    return ArrayView(
        exporter,
        int(address or 0),
        shape,
        strides,
        dtype,
        Device(CUDA, _number(exporter)),
        bool(is_read_only),
        is_stored_by_rows(shape, strides, dtype.itemsize),
        stream=interface.get("stream"),
    )


def _number(exporter: Any) -> int:
    """Return the number of the GPU of an object."""
    device = getattr(exporter, "device", 0)
    number = device if isinstance(device, int) else getattr(device, "id", 0)
    return number if isinstance(number, int) else 0
