"""Kernels whose code is a function in Python: its errors, its statuses, and the arrays that it sees."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from gossamer_backend import Artifact
from gossamer_backend.call.python_kernel import CallOutcome, python_kernel
from gossamer_ir.core.build import index_var
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.kernel_abi import OK, OUT_OF_BOUNDS
from gossamer_ir.interchange.records import BufferParam, ScalarParam, Signature

X = BufferParam("x", "X", "float64", (index_var("n"),), is_read=True, is_written=True)
SIGNATURE = Signature("toy", (X,), (ScalarParam("n", "int64"),), ("x", "n"))


def kernel_of(code, *, bounds_checked_buffers=()):
    return python_kernel(
        Artifact("toy", "1.0", "toy", SIGNATURE, b"", bounds_checked_buffers), code
    )


class ToyError(Exception):
    pass


def test_a_call_raises_what_the_function_raises_and_the_next_call_does_not():
    wrong = [True]

    def code(arrays, scalars):
        if wrong.pop():
            raise ToyError("broken")
        arrays["X"][:] = scalars["n"]
        return CallOutcome(OK)

    kernel, values = kernel_of(code), np.zeros(3)
    with pytest.raises(ToyError, match="broken"):
        kernel(values)
    assert not values.any()
    wrong.append(False)
    kernel(values)
    assert values.tolist() == [3.0, 3.0, 3.0]


def test_each_thread_raises_its_own_error():
    together = Barrier(2)

    def code(arrays, _scalars):
        together.wait(timeout=60)
        raise ToyError(arrays["X"][0])

    def message(number):
        with pytest.raises(ToyError) as caught:
            kernel(np.array([number]))
        return caught.value.args[0]

    kernel = kernel_of(code)
    with ThreadPoolExecutor(2) as pool:
        assert [*pool.map(message, (1.0, 2.0))] == [1.0, 2.0]


def test_a_failed_bounds_check_names_the_buffer():
    kernel = kernel_of(
        lambda _arrays, _scalars: CallOutcome(OUT_OF_BOUNDS, 0), bounds_checked_buffers=("X",)
    )
    with pytest.raises(ArgumentError, match="'X'") as caught:
        kernel(np.zeros(2))
    assert caught.value.code == "kernel.out_of_bounds"


def test_an_array_without_elements_has_no_address_and_is_empty():
    seen = []

    def code(arrays, _scalars):
        seen.append(arrays["X"])
        return CallOutcome(OK)

    kernel_of(code)(np.zeros(0))
    assert [(array.size, array.dtype) for array in seen] == [(0, np.dtype("float64"))]
