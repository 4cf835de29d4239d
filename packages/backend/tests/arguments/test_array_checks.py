"""Arrays of other packages as arguments: kernels use their memory, after the same checks."""

import ctypes
import re

import numpy as np
import pytest
from array_exporters import BFLOAT, Exporter, as_bfloat16
from array_packages import WAYS

from gossamer_backend.arguments.argument_checker import ArgumentChecker
from gossamer_ir.core.build import index_var
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import BufferParam, ScalarParam, Signature


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
