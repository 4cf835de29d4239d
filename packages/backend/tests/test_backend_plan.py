"""Prepared calls accept new arrays at each call and check them each time."""

import ctypes
import gc
import weakref

import numpy as np
import pytest

from gossamer_backend.call.abi import OUT_OF_BOUNDS
from gossamer_ir.core.build import index, index_var
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import BufferParam, ScalarParam, Signature
from gossamer_ir.nodes import InRange

N = (index_var("n"),)
P = BufferParam("p", "P", "int32", N, is_read=True, is_written=False,
                facts=(InRange("P", index(0), index_var("n")),))  # fmt: skip
X = BufferParam("x", "X", "float64", N, is_read=True, is_written=False)
Y = BufferParam("y", "Y", "float64", N, is_read=False, is_written=True)
GATHER = Signature("gather", (P, X, Y), (ScalarParam("n", "int64"),), ("p", "x", "y", "n"))


def gather(p, x, y, n, workspace):
    def view(kind, start):
        return np.frombuffer((kind * n).from_address(start)) if n else np.empty(0)

    positions = np.frombuffer((ctypes.c_int32 * n).from_address(p), dtype=np.int32)
    view(ctypes.c_double, y)[:] = view(ctypes.c_double, x)[positions]
    return 0


@pytest.fixture
def prepared(make_kernel):
    kernel = make_kernel(GATHER, gather)
    p = np.array([2, 0, 1], dtype=np.int32)
    return kernel.prepare("x", "y", p=p, x=np.empty(3), y=np.empty(3))


def test_each_call_has_arrays_of_its_own(prepared):
    for start in (0.0, 10.0):
        y = np.zeros(3)
        prepared(np.arange(3) + start, y)
        np.testing.assert_array_equal(y, [2 + start, start, 1 + start])


REFUSED = {
    "kernel.dtype": (np.ones(3, dtype=np.float32), np.zeros(3)),
    "kernel.shape": (np.ones(4), np.zeros(3)),
    "kernel.contiguity": (np.ones(6)[::2], np.zeros(3)),
    "kernel.array": ([1.0, 2.0, 3.0], np.zeros(3)),
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_does_not_fit_is_refused_as_by_bind(prepared, code):
    with pytest.raises(ArgumentError) as caught:
        prepared(*REFUSED[code])
    assert caught.value.code == code


def test_a_read_only_output_is_refused(prepared):
    y = np.zeros(3)
    y.flags.writeable = False
    with pytest.raises(ArgumentError) as caught:
        prepared(np.ones(3), y)
    assert caught.value.code == "kernel.read_only"


def test_an_output_that_overlaps_an_input_or_what_stays_is_refused(prepared, make_kernel):
    x = np.ones(3)
    with pytest.raises(ArgumentError) as caught:
        prepared(x, x)
    assert caught.value.code == "kernel.overlap"
    memory = np.zeros(4)
    p = memory.view(np.int32)[:3]
    other = make_kernel(GATHER, gather).prepare("x", "y", p=p, x=np.empty(3), y=np.empty(3))
    with pytest.raises(ArgumentError) as caught:
        other(np.ones(3), memory[:3])
    assert caught.value.code == "kernel.overlap"


def test_what_is_unusual_but_right_is_accepted(prepared):
    class Marked(np.ndarray):
        pass

    y = np.zeros(3)
    prepared(np.arange(3.0).view(Marked), y)
    np.testing.assert_array_equal(y, [2, 0, 1])


def test_the_wrong_number_of_arrays_is_an_error(prepared):
    with pytest.raises(ValueError, match="zip"):
        prepared(np.ones(3))


@pytest.mark.parametrize("name", ["n", "p", "absent"])
def test_only_arrays_of_values_can_change(make_kernel, name):
    kernel = make_kernel(GATHER, gather)
    values = {"p": np.zeros(3, dtype=np.int32), "x": np.empty(3), "y": np.empty(3)}
    with pytest.raises(ArgumentError) as caught:
        kernel.prepare(name, **values)
    assert caught.value.code == "kernel.prepare"


def test_what_stays_is_kept_alive(make_kernel):
    p = np.array([1, 0], dtype=np.int32)
    alive = weakref.ref(p)
    prepared = make_kernel(GATHER, gather).prepare("x", "y", p=p, x=np.empty(2), y=np.empty(2))
    del p
    gc.collect()
    assert alive() is not None
    y = np.zeros(2)
    prepared(np.array([5.0, 6.0]), y)
    np.testing.assert_array_equal(y, [6, 5])


def test_a_status_becomes_an_error(make_kernel):
    def fail(p, x, y, n, workspace):
        workspace.failed_buffer = 0
        return OUT_OF_BOUNDS

    kernel = make_kernel(GATHER, fail, guarded=("X",))
    p = np.zeros(1, dtype=np.int32)
    prepared = kernel.prepare("x", "y", p=p, x=np.empty(1), y=np.empty(1))
    with pytest.raises(ArgumentError, match="X out of bounds"):
        prepared(np.ones(1), np.ones(1))
