"""Capsules of DLPack for arrays of a backend, which other packages take without a copy.

Source: the header `dlpack.h` of DLPack 1.0, and the protocol of `__dlpack__` in the array API standard.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer_backend.arguments.array_view import ArrayView, ElementType
from gossamer_backend.arguments.dlpack import (
    BFLOAT,
    BOOL,
    DATA_TYPE_CODES,
    IS_COPIED,
    IS_READ_ONLY,
    MAX_VERSION,
    ManagedTensor,
    Tensor,
    VersionedTensor,
)

_exported: dict[int, tuple[object, ...]] = {}
"""The objects that managed tensors refer to, by the addresses of these, until their consumers free them."""


def exported_capsule(
    view: ArrayView, *, max_version: Sequence[int] | None = None, is_copied: bool = False
) -> object:
    """Return a new capsule with the memory of a view, for a consumer that knows DLPack up to a version (None:
    one before 1.0). The view is kept until the consumer frees the tensor, or the capsule is collected without
    one. `is_copied` says that nobody else has the memory. Raises `BufferError` if DLPack, or its version,
    cannot describe the array.

    >>> from gossamer_backend.arguments.array_view import numpy_view
    >>> class Exporter:
    ...     def __dlpack_device__(self):
    ...         return 1, 0
    ...     def __dlpack__(self, *, max_version=None, **options):
    ...         return exported_capsule(numpy_view(np.arange(3)), max_version=max_version)
    >>> np.from_dlpack(Exporter()).tolist()
    [0, 1, 2]
    """
    code, itemsize = _element_code(view.dtype)
    sizes = (ctypes.c_int64 * max(view.ndim, 1))(*view.shape)
    strides = (ctypes.c_int64 * max(view.ndim, 1))(*(step // itemsize for step in view.strides))
    tensor = Tensor(
        view.address,
        *view.device,
        view.ndim,
        (code, 8 * itemsize, 1),
        sizes,
        strides,
        0,
    )
    managed: Any
    if max_version is not None and tuple(max_version) >= MAX_VERSION:
        flags = IS_READ_ONLY * view.is_read_only | IS_COPIED * is_copied
        managed = VersionedTensor(*MAX_VERSION, None, _DELETER_ADDRESS, flags, tensor)
    elif view.is_read_only:
        raise BufferError("versions of DLPack before 1.0 cannot export read-only arrays")
    else:
        managed = ManagedTensor(tensor, None, _DELETER_ADDRESS)
    address = ctypes.addressof(managed)
    _exported[address] = (managed, sizes, strides, view)
    name = _VERSIONED if isinstance(managed, VersionedTensor) else _UNVERSIONED
    return _new_capsule(address, name, _destructor)


def _element_code(dtype: ElementType) -> tuple[int, int]:
    """Return the kind of the elements, and their size in bytes."""
    if dtype == "bfloat16":
        return BFLOAT, 2
    if isinstance(dtype, np.dtype):
        if dtype == np.bool_:
            return BOOL, 1
        for code, kind in DATA_TYPE_CODES.items():
            if kind == dtype.kind:
                return code, dtype.itemsize
    raise BufferError(f"DLPack has no elements of the dtype '{dtype}'")


_VERSIONED, _UNVERSIONED = b"dltensor_versioned", b"dltensor"


def _delete(address: int) -> None:
    _exported.pop(address, None)


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_delete)
_DELETER_ADDRESS = ctypes.cast(_DELETER, ctypes.c_void_p).value
_DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_new_capsule: Any = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _DESTRUCTOR
)(("PyCapsule_New", ctypes.pythonapi))
# By address: a capsule that is being freed must not be referred to again.
_has_name: Any = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer_of: Any = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _destroy(capsule: int) -> None:
    """Free the tensor of a capsule that was not consumed: a consumer changes its name."""
    for name in (_VERSIONED, _UNVERSIONED):
        if _has_name(capsule, name):
            _exported.pop(_pointer_of(capsule, name), None)


_destructor = _DESTRUCTOR(_destroy)
