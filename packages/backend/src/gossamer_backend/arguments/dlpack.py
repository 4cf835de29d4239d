"""Views of arrays that objects export by DLPack, on any device.

Only the description of an array is read, never an element. NumPy's own reader is for the CPU, and marks
arrays of versions of DLPack before 1.0 as read-only. Source: the header `dlpack.h` of DLPack 1.0.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from gossamer_backend.arguments.array_view import (
    ArrayView,
    ElementType,
    contiguous_strides,
    is_stored_by_rows,
)
from gossamer_backend.arguments.device import Device

MAX_VERSION = (1, 0)
"""The version of DLPack that exporters are asked for; they may answer with an older one."""

IS_READ_ONLY, IS_COPIED = 1, 2
"""Bits of `flags`."""


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_kind", ctypes.c_int32),
        ("device_number", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class ManagedTensor(ctypes.Structure):
    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class VersionedTensor(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


def exported_view(exporter: Any, *, stream: object = None) -> ArrayView:
    """Return the view of an object with `__dlpack__`; its owner is the capsule. `stream` is that of the
    consumer, which the exporter makes wait for the contents. Raises `BufferError` if the object cannot be
    exported.

    >>> view = exported_view(np.zeros((2, 3), np.float32))
    >>> view.strides, view.device.text, view.is_contiguous
    ((12, 4), 'cpu', True)
    """
    keywords = {} if stream is None else {"stream": stream}
    try:
        capsule = exporter.__dlpack__(max_version=MAX_VERSION, **keywords)
    except TypeError:  # exporters of versions before 1.0 do not take the argument
        capsule = exporter.__dlpack__(**keywords)
    address = _pointer_in(capsule, b"dltensor_versioned")
    if address is not None:
        versioned = VersionedTensor.from_address(address)
        if versioned.major != MAX_VERSION[0]:
            raise BufferError(f"DLPack {versioned.major}.{versioned.minor} is not supported")
        is_read_only = bool(versioned.flags & IS_READ_ONLY)
        return _view(exporter, versioned.tensor, capsule, is_read_only=is_read_only)
    address = _pointer_in(capsule, b"dltensor")
    if address is None:
        raise BufferError("__dlpack__ did not return a new capsule of DLPack")
    tensor = ManagedTensor.from_address(address).tensor
    return _view(exporter, tensor, capsule, is_read_only=False)


def _view(exporter: object, tensor: Tensor, capsule: object, *, is_read_only: bool) -> ArrayView:
    dtype, itemsize = _element_type(tensor.dtype)
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = contiguous_strides(shape, itemsize)
    # Null if the array is contiguous, in some versions.
    if tensor.strides:
        strides = tuple(itemsize * step for step in tensor.strides[: tensor.ndim])
    return ArrayView(
        exporter,
        (tensor.data or 0) + tensor.byte_offset,
        shape,
        strides,
        dtype,
        Device(tensor.device_kind, tensor.device_number),
        is_read_only,
        is_stored_by_rows(shape, strides, itemsize),
        # A capsule that is not consumed frees the tensor when it is collected.
        owner=capsule,
    )


DATA_TYPE_CODES = {0: "i", 1: "u", 2: "f", 5: "c"}
"""The kinds of numbers (`DLDataTypeCode`) that NumPy has, as in its array interface."""
BFLOAT, BOOL = 4, 6
"""Kinds of numbers of their own."""


def _element_type(dtype: _DataType) -> tuple[ElementType, int]:
    """Return the type of elements, and its size in bytes."""
    itemsize = (dtype.bits * dtype.lanes + 7) // 8
    match dtype.code, dtype.bits, dtype.lanes:
        case code, 8 | 16 | 32 | 64 | 128, 1 if code in DATA_TYPE_CODES:
            return _numpy_dtype(f"{DATA_TYPE_CODES[code]}{itemsize}"), itemsize
        case code, 8, 1 if code == BOOL:
            return np.dtype(np.bool_), itemsize
        case code, 16, 1 if code == BFLOAT:
            return "bfloat16", itemsize
    return f"type {dtype.code} of {dtype.bits} bits and {dtype.lanes} lanes", itemsize


def _numpy_dtype(text: str) -> ElementType:
    """Return the dtype of a text, or the text if NumPy has none, as for `i16` (integers of 16 bytes)."""
    try:
        return np.dtype(text)
    except TypeError:
        return text


_pointer_of: Any = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_is_valid: Any = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)


def _pointer_in(capsule: object, name: bytes) -> int | None:
    """Return the pointer in a capsule of this name; None if it has another one, or is not a capsule."""
    if not _is_valid(capsule, name):
        return None
    pointer: int = _pointer_of(capsule, name)
    return pointer
