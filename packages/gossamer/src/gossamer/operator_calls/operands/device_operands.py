"""Dense operands and outputs on a device, which other packages export by DLPack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from gossamer_backend import HOST, Device
from gossamer_backend.internal_api import ArrayView, view_of
from gossamer_ir.errors import ArgumentError


def device_view(name: str, value: Any) -> ArrayView | None:
    """Return the view of an array on a device; None for anything else, also for arrays of the host that are
    not NumPy's."""
    if isinstance(value, (np.ndarray, np.generic)):
        return None
    if hasattr(value, "__dlpack_device__"):
        # Before the memory is exported, which some packages refuse for tensors of the host.
        is_on_device = tuple(value.__dlpack_device__()) != HOST
    else:
        is_on_device = hasattr(value, "__cuda_array_interface__")
    if not is_on_device:
        return None
    view = view_of(value, name=name)
    return None if view.device == HOST else view


def shape_of_array(array: Any) -> tuple[int, ...]:
    """Return the shape of an array, also of one on a device that describes it only where it exports its
    memory."""
    view = device_view("the array", array)
    shape: tuple[int, ...] = array.shape if view is None else view.shape
    return shape


def require_contiguous(name: str, view: ArrayView) -> None:
    """Raise unless the elements of an array of a device follow each other by rows."""
    if not view.is_contiguous:
        raise ArgumentError(
            "operand.contiguity",
            f"'{name}' has the strides {view.strides}; expected a C-contiguous array.",
            hint="Arrays of a device are not copied: pass a copy.",
        )


def common_device(arrays: Mapping[str, Iterable[Any]]) -> Device:
    """Return the device of the arrays of several operands, which have names for errors. Raise `ArgumentError`
    (`operand.device`) if they are on several devices."""
    operands: dict[Device, str] = {}
    for name, operand_arrays in arrays.items():
        for array in operand_arrays:
            view = device_view(name, array)
            operands.setdefault(HOST if view is None else view.device, name)
    if len(operands) > 1:
        listed = ", ".join(f"{name} on '{device.text}'" for device, name in operands.items())
        raise ArgumentError(
            "operand.device",
            f"The operands are on several devices: {listed}.",
            hint="Copy all arrays, also those of the matrix, to one device.",
        )
    return next(iter(operands), HOST)
