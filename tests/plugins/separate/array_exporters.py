"""Objects that export arrays by DLPack, on any device, or by the array interface."""

import ctypes

import numpy as np

CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
BFLOAT = 4
OFFSET = 64
"""The `byte_offset` of all tensors, which consumers have to add to the address."""

_make_capsule = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))
_KEPT = []
"""The objects that capsules point to: they are never freed."""


class Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("dtype", Type),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class Managed(ctypes.Structure):
    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class Versioned(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


def new_capsule(exported, *kept):
    """Return a new capsule of DLPack with a managed tensor, which refers to `kept`."""
    _KEPT.append((exported, *kept))
    name = b"dltensor_versioned" if isinstance(exported, Versioned) else b"dltensor"
    return _make_capsule(ctypes.addressof(exported), name, None)


class Exporter:
    """Exports the memory of a NumPy array as that of a device. `version` is that of DLPack that it knows;
    None for those before 1.0, which take no `max_version`."""

    def __init__(self, array, *, device=(1, 0), version=(1, 0), code=None, contiguous=False):
        self.array, self.device, self.version = array, device, version
        self.code, self.contiguous, self.streams = code, contiguous, []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        if self.version is None and "max_version" in options:
            raise TypeError("unexpected argument")
        self.streams.append(options.get("stream"))
        return self.capsule()

    def capsule(self):
        array = self.array
        ints = ctypes.c_int64 * max(array.ndim, 1)
        shape = ints(*array.shape)
        strides = ints(*(stride // array.itemsize for stride in array.strides))
        code = CODES[array.dtype.kind] if self.code is None else self.code
        tensor = Tensor(
            array.ctypes.data - OFFSET,
            self.device,
            array.ndim,
            Type(code, 8 * array.itemsize, 1),
            ctypes.addressof(shape),
            None if self.contiguous else ctypes.addressof(strides),
            OFFSET,
        )
        if self.version is None:
            return new_capsule(Managed(tensor, None, None), shape, strides, array)
        flags = 0 if array.flags.writeable else 1
        exported = Versioned(self.version, None, None, flags, tensor)
        return new_capsule(exported, shape, strides, array)


class Interface:
    """An array that NumPy reads by its array interface only."""

    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


class Unexportable:
    """A tensor that needs a gradient, and so cannot be exported."""

    def __dlpack__(self, **options):
        raise BufferError("it requires a gradient")


def as_bfloat16(values):
    """The upper halves of float32 numbers."""
    return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
