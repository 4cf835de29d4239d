"""Subarrays of arrays of a device: addresses, shapes and strides, however the array is exported."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from gossamer_backend.arguments.dlpack_export import exported_capsule
from gossamer_backend.arguments.subarray import subarray
from gossamer_backend.arguments.view_of import view_of

ARRAY = np.arange(2 * 3 * 4, dtype=np.int16).reshape(2, 3, 4)


class Exporter:
    def __init__(self):
        self.streams = []

    def __dlpack_device__(self):
        return 2, 1

    def __dlpack__(self, *, stream=None, max_version=None):
        self.streams.append(stream)
        return exported_capsule(view_of(ARRAY, name="x"), max_version=max_version)


@pytest.mark.parametrize("index", [(), (1,), (0, 2)])
def test_an_export_is_one_of_the_array_for_the_same_stream(index):
    exporter = Exporter()
    part = subarray(exporter, index)
    view = view_of(part, name="part", stream=7)
    assert exporter.streams == [7]
    assert part.__dlpack_device__() == (2, 1)
    expected = ARRAY[index]
    assert (view.shape, view.strides) == (expected.shape, expected.strides)
    assert view.address == expected.__array_interface__["data"][0]


def test_a_description_keeps_the_stream_and_the_device():
    interface = {
        "shape": (2, 3),
        "typestr": "<f4",
        "data": (4096, True),
        "strides": (16, 4),
        "version": 3,
        "stream": 9,
    }
    array = SimpleNamespace(device=5, __cuda_array_interface__=interface)
    view = view_of(subarray(array, (1,)), name="part")
    assert (view.address, view.shape, view.strides) == (4096 + 16, (3,), (4,))
    assert (view.device.text, view.stream, view.is_read_only) == ("cuda:5", 9, True)


@pytest.mark.parametrize("asked", [{"copy": True}, {"dl_device": (1, 0)}])
def test_a_subarray_is_not_copied(asked):
    part = subarray(Exporter(), (1,))
    assert part.__dlpack__(copy=False, dl_device=(2, 1))
    with pytest.raises(BufferError, match="not copied"):
        part.__dlpack__(**asked)
