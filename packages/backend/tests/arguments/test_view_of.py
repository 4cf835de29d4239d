"""Views of arrays of other packages: they say what NumPy says."""

import gc
import re
import weakref

import numpy as np
import pytest
from array_exporters import Exporter, Unexportable
from array_packages import WAYS

from gossamer_backend.arguments.view_of import view_of
from gossamer_ir.errors import ArgumentError

DTYPES = ("bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64", "complex64")
FORMS = {
    "rows": lambda array: array,
    "columns": lambda array: array.T,
    "every second column": lambda array: array[:, ::2],
    "backwards": lambda array: array[::-1],
    "no rows": lambda array: array[:0],
    "one row": lambda array: array[1:2],
    "a number": lambda array: array[1, 1:2].reshape(()),
}


def described(view):
    return view.address, view.shape, view.strides, view.dtype, view.is_contiguous, view.size


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", WAYS)
def test_a_view_says_what_numpy_says(way, dtype, form):
    array = FORMS[form](np.arange(12).reshape(3, 4).astype(dtype))
    view = view_of(WAYS[way](array), name="x")
    expected = (
        array.ctypes.data,
        array.shape,
        array.strides,
        array.dtype,
        array.flags.c_contiguous,
        array.size,
    )
    assert described(view) == expected
    assert view.device.text == "cpu"
    assert not view.is_read_only
    np.testing.assert_array_equal(view.array, array)


@pytest.mark.parametrize("way", ["NumPy", "the array interface", "DLPack 1"])
def test_read_only_arrays_are_marked(way):
    array = np.zeros(3)
    array.setflags(write=False)
    assert view_of(WAYS[way](array), name="x").is_read_only


def test_contiguous_tensors_may_have_no_strides():
    view = view_of(Exporter(np.zeros((2, 3), np.float32), contiguous=True), name="x")
    assert (view.strides, view.is_contiguous) == ((12, 4), True)


def test_arrays_of_a_device_are_described_and_not_read():
    memory = Exporter(np.zeros((2, 3), np.float32), device=(2, 1))
    view = view_of(memory, name="x", stream=77)
    assert (view.device.text, view.array is memory) == ("cuda:1", True)
    assert memory.streams == [77]


class Exported:
    """An array that is freed with the capsule that NumPy makes for it."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)


class Watched(np.ndarray):
    """An array to which there can be weak references."""


def test_the_memory_lives_as_long_as_the_array_of_the_view():
    array = np.arange(1000.0).view(Watched)
    watch = weakref.ref(array)
    viewed = view_of(Exported(array), name="x").array
    del array
    gc.collect()
    assert watch() is not None
    np.testing.assert_array_equal(viewed, np.arange(1000.0))
    del viewed
    gc.collect()
    assert watch() is None


REFUSED = {
    "a list": ([1.0], "the type 'list'; expected an array. Convert it with numpy.asarray."),
    "a number of NumPy": (np.float32(1), "the type 'float32'"),
    "a tensor with a gradient": (
        Unexportable(),
        "DLPack cannot export it: it requires a gradient.",
    ),
    "a later version": (Exporter(np.zeros(3), version=(2, 0)), "DLPack 2.0 is not supported"),
}


@pytest.mark.parametrize(("value", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_an_array_is_refused(value, text):
    with pytest.raises(ArgumentError, match=re.escape(text)) as caught:
        view_of(value, name="x")
    assert caught.value.code == "kernel.array"
