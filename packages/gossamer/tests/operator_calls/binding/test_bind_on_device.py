"""Operators refuse arrays of a device that a kernel of the host cannot read, by an exporter that only claims
to be on one. Calls that run are in `tests/integration/test_device_operators.py`."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import gossamer as gs
from gossamer.operator_calls.binding import bind_on_device
from gossamer_ir.errors import ArgumentError

ADDRESS = 1 << 40
ROWS, COLUMNS, FEATURES, STORED = 2, 3, 4, 5


class OnDevice:
    """An array of which no element is in reach: code that read one would crash. It has a shape and a dtype
    only in its interface."""

    def __init__(self, shape, dtype):
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": np.dtype(dtype).str,
            "data": (ADDRESS, False),
            "version": 3,
        }


INDPTR, INDICES = OnDevice((ROWS + 1,), np.int32), OnDevice((STORED,), np.int32)
A = gs.CsrArrays((ROWS, COLUMNS), INDPTR, INDICES, OnDevice((STORED,), np.float32))
B = OnDevice((COLUMNS, FEATURES), np.float32)
OUT = OnDevice((ROWS, FEATURES), np.float32)


def refused(error, code, **arguments):
    with pytest.raises(error) as caught:
        gs.spmm(A, **arguments)
    assert caught.value.code == code
    return str(caught.value)


def test_operands_on_several_devices_are_refused():
    on_host = np.zeros((COLUMNS, FEATURES), np.float32)
    assert "the matrix on 'cuda:0', a dense operand on 'cpu'" in refused(
        ArgumentError, "operand.device", B=on_host
    )


def test_a_target_of_the_host_is_refused():
    message = refused(ArgumentError, "operand.device", B=B, out=OUT)
    assert (
        "on the device 'cuda:0', and kernels for the target 'generic-cpu' run on the host"
        in message
    )


CALLS = {
    "spmv": (OnDevice((COLUMNS,), np.float32),),
    "sddmm": (OnDevice((ROWS, FEATURES), np.float32), B),
    "attention": (OnDevice((ROWS, FEATURES), np.float32), B, B),
}


@pytest.mark.parametrize("name", CALLS)
def test_shapes_are_those_of_the_interface(name):
    with pytest.raises(ArgumentError, match="run on the host"):
        getattr(gs, name)(A, *CALLS[name])


def test_a_backend_that_cannot_make_arrays_is_named(monkeypatch):
    kernel = SimpleNamespace(signature=SimpleNamespace(buffers=()))
    monkeypatch.setattr(
        bind_on_device, "kernel_for", lambda request, *, target: SimpleNamespace(kernel=kernel)
    )
    message = refused(ArgumentError, "operand.allocation", B=B)
    assert "'generic-cpu' cannot make arrays on the device 'cuda:0'" in message
