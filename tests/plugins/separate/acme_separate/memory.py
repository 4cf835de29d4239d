"""The memory of the device: arrays in it, which are exported by DLPack, and copies from and to the host."""

import ctypes
from math import prod
from threading import Lock

import numpy as np
from array_exporters import CODES, Tensor, Type, Versioned, new_capsule

from gossamer_backend.plugin_api import Device

DEVICE = Device(12, 0)
BASE = 1 << 46
"""The first address of the device, which no process can have."""
SIZE = 1 << 26
ALIGNMENT = 256


class _Storage:
    """The bytes of the device. `copied` counts those that were copied to the host."""

    def __init__(self):
        self.bytes = np.zeros(SIZE, np.uint8)
        self.used, self.copied = 0, 0
        self._lock = Lock()

    def allocate(self, size):
        """Return the address of new memory, which is never freed."""
        with self._lock:
            address = BASE + self.used
            self.used += -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        assert self.used <= SIZE, "the memory of the device is full"
        return address

    def elements(self, address, shape, dtype):
        """Return the memory at an address as the device sees it."""
        start, dtype = address - BASE, np.dtype(dtype)
        assert 0 <= start <= SIZE, "not an address of the device"
        return self.bytes[start : start + prod(shape) * dtype.itemsize].view(dtype).reshape(shape)


STORAGE = _Storage()


class SeparateArray:
    """An array on the device, stored by rows. It knows its address; there is no way to its elements but a
    copy."""

    def __init__(self, shape, dtype, *, address=None):
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        size = prod(self.shape) * self.dtype.itemsize
        self.address = STORAGE.allocate(size) if address is None else address
        self.streams = []

    def __dlpack_device__(self):
        return tuple(DEVICE)

    def __dlpack__(self, *, max_version=None, stream=None):
        self.streams.append(stream)
        sizes = (ctypes.c_int64 * max(len(self.shape), 1))(*self.shape)
        dtype = Type(CODES[self.dtype.kind], 8 * self.dtype.itemsize, 1)
        at = ctypes.addressof(sizes)
        tensor = Tensor(self.address, DEVICE, len(self.shape), dtype, at, None, 0)
        return new_capsule(Versioned((1, 0), None, None, 0, tensor), sizes)


def to_device(array):
    """Return a copy of a NumPy array on the device."""
    copied = SeparateArray(array.shape, array.dtype)
    STORAGE.elements(copied.address, array.shape, array.dtype)[...] = array
    return copied


def to_host(array):
    """Return a copy of an array of the device, whose work must have been done, as one of NumPy."""
    elements = STORAGE.elements(array.address, array.shape, array.dtype)
    STORAGE.copied += elements.nbytes
    return elements.copy()


class SeparateAddresses:
    """The memory of the device, for the checks of arguments."""

    device = DEVICE

    def wait(self, stream):
        stream.synchronize()

    def to_host(self, view):
        return to_host(view)
