"""Arrays that are described by `__cuda_array_interface__`, by an exporter that only claims to be on a GPU."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from gossamer_backend.arguments.argument_checker import ArgumentChecker
from gossamer_backend.arguments.device import Device
from gossamer_backend.arguments.view_of import view_of
from gossamer_ir import signature_of
from gossamer_ir.errors import ArgumentError
from gossamer_ir.script import parse_module

ADDRESS = 1 << 40
COPY = """
@T.prim_func
def copy(x: T.handle, y: T.handle, n: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    for i in T.serial(n):
        Y[i] = X[i]
"""


class Described:
    """An array of no elements in reach: code that read one would crash."""

    def __init__(self, array, *, device=0, **entries):
        self.device = device
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (ADDRESS, False),
            "version": 3,
            "strides": None if array.flags.c_contiguous else array.strides,
            "stream": None,
            **entries,
        }


@pytest.mark.parametrize("device", [1, SimpleNamespace(id=1)])
def test_the_view_has_the_device_and_the_memory(device):
    array = Described(np.zeros((2, 3), np.float64), device=device)
    view = view_of(array, name="x")
    assert (view.array, view.address, view.device) == (array, ADDRESS, Device(2, 1))
    assert (view.shape, view.strides, view.dtype) == ((2, 3), (24, 8), np.float64)
    assert (view.is_contiguous, view.is_read_only, view.stream) == (True, False, None)


def test_strides_read_only_memory_and_the_stream_are_read():
    array = Described(np.zeros((2, 3), np.int32).T, data=(ADDRESS, True), stream=7)
    view = view_of(array, name="x")
    assert (view.strides, view.is_contiguous, view.is_read_only) == ((4, 12), False, True)
    assert view.stream == 7


def test_earlier_versions_have_no_stream():
    array = Described(np.zeros(3, np.float32), version=2)
    del array.__cuda_array_interface__["stream"]
    assert view_of(array, name="x").stream is None


def test_dlpack_is_preferred():
    array = np.zeros(3, np.float32)
    exporter = Described(array)
    exporter.__dlpack__ = array.__dlpack__
    assert view_of(exporter, name="x").device.text == "cpu"


INVALID = {
    "a mask": {"mask": np.ones(3)},
    "a later version": {"version": 4},
    "no shape": {"shape": None},
    "no dtype": {"typestr": "<?9"},
    "no address": {"data": None},
    "strides of another array": {"strides": (8, 8)},
}


@pytest.mark.parametrize("entries", INVALID.values(), ids=INVALID)
def test_an_invalid_description_is_refused_by_the_name_of_the_argument(entries):
    with pytest.raises(ArgumentError, match="It cannot be read") as caught:
        view_of(Described(np.zeros(3, np.float32), **entries), name="x")
    assert caught.value.code == "kernel.array"
    assert "'x' has the type 'Described'" in str(caught.value)


class RecordedMemory:
    """The memory of a GPU, which records the streams that are waited for."""

    device = Device(2, 0)

    def __init__(self):
        self.streams = []

    def wait(self, stream):
        self.streams.append(stream)

    def to_host(self, view):
        raise AssertionError("no element is needed")


@pytest.mark.parametrize(("stream", "waited"), [(None, []), (5, [5])])
def test_the_stream_that_writes_an_array_is_waited_for(stream, waited):
    memory = RecordedMemory()
    checker = ArgumentChecker(signature_of(parse_module(COPY), space="global"), memory=memory)
    x = Described(np.zeros(4, np.float32), stream=stream)
    y = Described(np.zeros(4, np.float32), data=(ADDRESS + 64, False))
    matched = checker.check((x, y), {}, stream=3)
    assert (matched.values["n"], matched.views["x"].address) == (4, ADDRESS)
    assert memory.streams == waited


def test_an_array_of_another_gpu_is_refused():
    checker = ArgumentChecker(
        signature_of(parse_module(COPY), space="global"), memory=RecordedMemory()
    )
    x, y = (Described(np.zeros(4, np.float32), device=number) for number in (1, 0))
    with pytest.raises(ArgumentError, match="'x' is on the device 'cuda:1'") as caught:
        checker.check((x, y), {})
    assert caught.value.code == "kernel.device"
