"""Capsules of DLPack: what they describe, and when the memory is free."""

import gc
import weakref

import numpy as np
import pytest

from gossamer_backend.arguments import dlpack_export
from gossamer_backend.arguments.array_view import numpy_view
from gossamer_backend.arguments.device import Device
from gossamer_backend.arguments.dlpack_export import exported_capsule
from gossamer_backend.arguments.view_of import view_of


class Owner(np.ndarray):
    """An array to which references can be counted."""


class Exporter:
    def __init__(self, view, *, version=(1, 0)):
        self.view, self.version = view, version

    def __dlpack_device__(self):
        return tuple(self.view.device)

    def __dlpack__(self, **options):
        return exported_capsule(self.view, max_version=self.version)


@pytest.mark.parametrize("version", [(1, 0), None], ids=["1.0", "before"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "float64", "complex64"])
def test_what_is_exported_is_viewed_again(dtype, version):
    array = np.ones((2, 3), dtype)
    view = view_of(Exporter(numpy_view(array), version=version), name="x")
    assert (view.shape, view.strides, view.dtype) == ((2, 3), array.strides, array.dtype)
    assert (view.address, view.is_read_only) == (array.ctypes.data, False)


def test_the_device_is_exported():
    view = numpy_view(np.ones(3))._replace(device=Device(2, 1))
    assert view_of(Exporter(view), name="x").device == Device(2, 1)


def test_read_only_arrays_need_a_version_with_flags():
    array = np.ones(3)
    array.flags.writeable = False
    assert view_of(Exporter(numpy_view(array)), name="x").is_read_only
    with pytest.raises(BufferError, match="versions of DLPack before"):
        exported_capsule(numpy_view(array))


def test_elements_of_16_bits_that_numpy_lacks_are_exported():
    view = numpy_view(np.ones((2, 3), np.uint16))._replace(dtype="bfloat16", device=Device(2, 0))
    again = view_of(Exporter(view), name="x")
    assert (again.dtype, again.strides) == ("bfloat16", (6, 2))


@pytest.mark.parametrize("array", [np.zeros(2, "M8[s]"), np.zeros(2, "S3")], ids=["time", "text"])
def test_other_elements_are_refused(array):
    with pytest.raises(BufferError, match="has no elements of the dtype"):
        exported_capsule(numpy_view(array))


@pytest.mark.parametrize("is_consumed", [True, False])
def test_the_array_is_kept_until_nobody_needs_it(is_consumed):
    before = len(dlpack_export._exported)
    array = np.arange(3.0).view(Owner)
    alive = weakref.ref(array)
    # The version that all versions of NumPy consume.
    exporter = Exporter(numpy_view(array), version=None)
    taken = np.from_dlpack(exporter) if is_consumed else exporter.__dlpack__()
    del array, exporter
    gc.collect()
    assert alive() is not None
    if is_consumed:
        assert taken.tolist() == [0.0, 1.0, 2.0]
    del taken
    gc.collect()
    assert alive() is None
    assert len(dlpack_export._exported) == before
