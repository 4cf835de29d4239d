"""Arrays of other packages: views of them say what NumPy says, and kernels use their memory."""

import ctypes
import gc
import re
import weakref

import numpy as np
import pytest
from array_exporters import BFLOAT, Exporter, Interface, Unexportable, as_bfloat16

from gossamer_backend.arguments.match import ArgumentChecker
from gossamer_backend.arguments.view_of import view_of
from gossamer_ir.core.build import index_var
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import BufferParam, ScalarParam, Signature

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
WAYS = {
    "NumPy": lambda array: array,
    "the array interface": Interface,
    "DLPack 1": Exporter,
    "DLPack 0": lambda array: Exporter(array, version=None),
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


def checker(dtype="float32"):
    x = BufferParam("x", "X", dtype, (index_var("n"),), is_read=True, is_written=True)
    return ArgumentChecker(Signature("f", (x,), (ScalarParam("n", "int64"),), ("x", "n")))


@pytest.mark.parametrize("way", WAYS)
def test_a_kernel_is_given_the_memory_of_the_array(way):
    array = np.arange(5, dtype=np.float32)
    matched = checker().check((WAYS[way](array),), {})
    assert matched.values["n"] == 5
    assert matched.views["x"].address == array.ctypes.data
    matched.values["x"][0] = 7
    assert array[0] == 7


WRONG = {
    "kernel.dtype": (Exporter(np.zeros(3)), "'x' has dtype float64; expected float32"),
    "kernel.contiguity": (Exporter(np.zeros(6, np.float32)[::2]), "is not C-contiguous"),
    "kernel.device": (
        Exporter(np.zeros(3, np.float32), device=(2, 0)),
        "'x' is on the device 'cuda:0', and the kernel runs on 'cpu'. Copy it to the CPU.",
    ),
}


@pytest.mark.parametrize(("code", "value", "text"), [(code, *row) for code, row in WRONG.items()])
def test_exported_arrays_are_checked_like_those_of_numpy(code, value, text):
    with pytest.raises(ArgumentError, match=re.escape(text)) as caught:
        checker().check((value,), {})
    assert caught.value.code == code


def test_a_type_that_numpy_lacks_is_named():
    with pytest.raises(ArgumentError, match="has dtype type 7 of 32 bits and 1 lanes"):
        checker().check((Exporter(np.zeros(3, np.float32), code=7),), {})


def test_tensors_of_bfloat16_are_passed_as_their_bits():
    bits = as_bfloat16([1.0, -2.0])
    matched = checker("bfloat16").check((Exporter(bits, code=BFLOAT),), {})
    np.testing.assert_array_equal(matched.values["x"], bits)
    with pytest.raises(ArgumentError, match="has dtype bfloat16; expected uint16"):
        checker("uint16").check((Exporter(bits, code=BFLOAT),), {})


def test_a_kernel_computes_on_exported_memory(make_kernel):
    x = BufferParam("x", "X", "float64", (index_var("n"),), is_read=True, is_written=True)
    signature = Signature("double", (x,), (ScalarParam("n", "int64"),), ("x", "n"))

    def double(x, n, workspace):
        values = np.frombuffer((ctypes.c_double * n).from_address(x))
        values *= 2
        return 0

    array = np.arange(4.0)
    bound = make_kernel(signature, double).bind(Exporter(array))
    bound()
    bound()
    np.testing.assert_array_equal(array, [0, 4, 8, 12])
