"""Kernels whose code is a function in Python, such as one that has another machine do the work.

A `NativeKernel` calls the address of a function. Here this is a function in Python, called by ctypes, so that
all that checks, binds and plans calls is the same as for native code.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping
from math import prod
from typing import Any, TypeAlias

import msgspec
import numpy as np

from gossamer_backend.arguments.array_checks import numpy_dtype
from gossamer_backend.arguments.size_equations import evaluate_size
from gossamer_backend.artifact import Artifact
from gossamer_backend.call.abi import prototype
from gossamer_backend.call.native_kernel import NativeKernel
from gossamer_ir.errors import InternalError
from gossamer_ir.interchange.kernel_abi import INTERRUPTED, NOT_GUARDED
from gossamer_ir.interchange.records import Signature
from gossamer_support.arrays import Array


class CallOutcome(msgspec.Struct, frozen=True):
    """The status of a call, and the index of the buffer whose bounds check failed."""

    status: int
    failed_buffer: int = NOT_GUARDED


PythonCode: TypeAlias = Callable[[Mapping[str, Array], Mapping[str, Any]], CallOutcome]
"""Runs a call. It takes the arrays, flat, by the names of their buffers, and the scalars by name."""


def python_kernel(
    artifact: Artifact, code: PythonCode, *, emulator: str | None = None
) -> NativeKernel:
    """Return the kernel of an artifact on arrays of the host, whose calls a function in Python runs. A call
    raises what the function raises.

    >>> from gossamer_backend import Artifact
    >>> from gossamer_ir.core.build import index_var
    >>> from gossamer_ir.interchange.records import BufferParam, ScalarParam, Signature
    >>> x = BufferParam("x", "X", "float64", (index_var("n"),), is_read=True, is_written=True)
    >>> signature = Signature("double", (x,), (ScalarParam("n", "int64"),), ("x", "n"))
    >>> def double(arrays, scalars):
    ...     arrays["X"][:] *= 2
    ...     return CallOutcome(0)
    >>> kernel = python_kernel(Artifact("toy", "1.0", "toy", signature, b""), double)
    >>> values = np.array([1.0, 2.0])
    >>> kernel(values)
    >>> values.tolist()
    [2.0, 4.0]
    """
    errors = _LastError()
    entry = prototype(artifact.signature)(_entry_function(artifact.signature, code, errors))
    address = ctypes.cast(entry, ctypes.c_void_p).value
    assert address is not None
    return NativeKernel(
        artifact,
        address,
        interruption=errors.call_exception,
        keep_alive=(entry,),
        emulator=emulator,
    )


class _LastError(threading.local):
    """The error of the last call of a thread. Python only prints what a function raises that ctypes calls, so
    the call returns `INTERRUPTED`, and the kernel raises the error that is kept here."""

    error: BaseException | None = None

    def call_exception(self) -> BaseException:
        error, self.error = self.error, None
        return error if error is not None else InternalError("A call of a kernel has no error.")


def _entry_function(
    signature: Signature, code: PythonCode, errors: _LastError
) -> Callable[..., int]:
    def entry(*values: Any) -> int:
        *passed, workspace = values
        by_name = dict(zip(signature.order, passed, strict=True))
        scalars = {param.name: by_name[param.name] for param in signature.scalars}
        try:
            outcome = code(_ArraysAtAddresses(signature, by_name, scalars), scalars)
        except BaseException as error:  # noqa: BLE001  (the kernel raises it)
            errors.error = error
            return INTERRUPTED
        workspace.contents.failed_buffer = outcome.failed_buffer
        return outcome.status

    return entry


class _ArraysAtAddresses(dict[str, Array]):
    """The arrays of a call by the names of their buffers. They are made when they are needed, since the size
    of one may be an element of another."""

    def __init__(
        self, signature: Signature, values: Mapping[str, Any], scalars: Mapping[str, Any]
    ) -> None:
        super().__init__()
        self._params = {param.buffer: param for param in signature.buffers}
        self._values, self._scalars = values, scalars

    def __missing__(self, buffer_name: str) -> Array:
        param = self._params[buffer_name]
        dtype = numpy_dtype(param)
        count = prod(evaluate_size(size, self._scalars, arrays=self) for size in param.shape)
        # An array without elements may have no address.
        if count:
            memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(
                self._values[param.name]
            )
            self[buffer_name] = np.frombuffer(memoryview(memory), dtype)
        else:
            self[buffer_name] = np.empty(0, dtype)
        return self[buffer_name]
