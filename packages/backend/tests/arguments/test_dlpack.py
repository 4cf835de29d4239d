"""Capsules of DLPack: their descriptions of types, strides, devices and versions."""

import numpy as np
import pytest
from array_exporters import Exporter, Unexportable

from gossamer_backend.arguments.dlpack import exported_view


@pytest.mark.parametrize("version", [None, (1, 0), (1, 7)])
def test_the_view_is_of_the_exported_memory(version):
    array = np.arange(12, dtype=np.float64).reshape(3, 4)[:, ::2]
    view = exported_view(Exporter(array, version=version))
    assert (view.address, view.shape, view.strides) == (array.ctypes.data, (3, 2), array.strides)
    assert (view.dtype, view.is_contiguous) == (array.dtype, False)


def test_a_capsule_without_strides_is_of_a_contiguous_array():
    view = exported_view(Exporter(np.zeros((2, 0, 5), np.int16), contiguous=True))
    assert view.shape == (2, 0, 5)
    assert view.is_contiguous
    view = exported_view(Exporter(np.zeros((2, 5), np.int16), contiguous=True))
    assert (view.strides, view.is_contiguous) == ((10, 2), True)


def test_only_versions_with_flags_mark_arrays_as_read_only():
    array = np.zeros(3)
    array.flags.writeable = False
    assert exported_view(Exporter(array)).is_read_only
    assert not exported_view(Exporter(array, version=None)).is_read_only


def test_the_device_is_that_of_the_exporter():
    device = exported_view(Exporter(np.zeros(3), device=(2, 1))).device
    assert (device.kind, device.number) == (2, 1)


def test_the_stream_of_the_consumer_reaches_the_exporter():
    exporter = Exporter(np.zeros(3), device=(2, 0))
    exported_view(exporter, stream=7)
    exported_view(exporter)
    assert exporter.streams == [7, None]


TYPES = {
    (4, "uint16"): "bfloat16",
    (6, "uint8"): np.dtype("bool"),
    (5, "complex128"): np.dtype("complex128"),
    (0, "complex128"): "i16",
    (9, "float32"): "type 9 of 32 bits and 1 lanes",
}


@pytest.mark.parametrize(("code", "dtype"), TYPES)
def test_types_are_those_of_numpy_or_named(code, dtype):
    view = exported_view(Exporter(np.zeros(2, dtype), code=code))
    assert view.dtype == TYPES[code, dtype]


class NoCapsule:
    def __dlpack__(self, **options):
        return b"dltensor"


class UsedCapsule:
    """An exporter whose capsule was consumed already, so that it has another name."""

    def __dlpack__(self, **options):
        from array_exporters import _make_capsule

        return _make_capsule(1, b"used_dltensor", None)


REFUSED = [
    (Unexportable(), "requires a gradient"),
    (Exporter(np.zeros(3), version=(2, 0)), "DLPack 2.0 is not supported"),
    (NoCapsule(), "did not return a new capsule"),
    (UsedCapsule(), "did not return a new capsule"),
]


@pytest.mark.parametrize(("exporter", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_what_cannot_be_exported_is_refused(exporter, reason):
    with pytest.raises(BufferError, match=reason):
        exported_view(exporter)
