"""Arrays of other libraries as NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer_ir.errors import FormatError
from gossamer_support.arrays import Array

_CPU = 1
"""The number of the CPU among the device types of DLPack."""


def numpy_array(name: str, array: Any) -> Array:
    """Return an array as a NumPy array, which shares its memory if DLPack exports it.

    Raises `FormatError`: `format.device` unless it is on the CPU, `format.dlpack` if it cannot be exported.

    >>> numpy_array("data", [1.0, 2.0])
    array([1., 2.])
    """
    # NumPy's own arrays are not exported: before version 2.1, read-only ones could not be.
    if isinstance(array, np.ndarray) or not hasattr(array, "__dlpack__"):
        return np.asarray(array)
    device, _ = array.__dlpack_device__()
    if device != _CPU:
        raise FormatError(
            "format.device",
            f"{name} is on a device of DLPack's type {int(device)}; expected {_CPU}, the CPU.",
            hint="Copy it to the CPU.",
        )
    try:
        return np.from_dlpack(array)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise FormatError("format.dlpack", f"{name} cannot be exported: {error}.") from error
