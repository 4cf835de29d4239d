"""Kernels whose code runs in an emulated process.

A `NativeKernel` calls the address of a function. Here this is a function in Python, called by ctypes, that
sends the arrays to the process and stores the results. So all that checks, binds and plans calls is the same
as for native code.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from gossamer_backend.plugin_api import (
    INTERRUPTED,
    Artifact,
    NativeKernel,
    evaluate_size,
    numpy_dtype,
    prototype,
)
from gossamer_emulation.driver.program import reason_against_emulation
from gossamer_emulation.emulated_machine import Architecture, EmulatedMachine
from gossamer_emulation.emulator import (
    MAX_STACK_ARGUMENTS,
    EmulatedArgument,
    EmulatedArray,
    EmulatedFloat,
    Emulator,
    emulator_of,
)
from gossamer_ir.errors import ArgumentError, InternalError
from gossamer_ir.interchange.records import BufferParam, ScalarParam, Signature
from gossamer_ir.support.arrays import Array
from gossamer_ir.support.typed_calls import typed


@typed
def emulated_kernel(artifact: Artifact, machine: EmulatedMachine) -> NativeKernel:
    """Return the kernel of an artifact, whose object code runs on an emulated machine, on one thread. The
    kernels of a machine share a process.

    `ArgumentError` (`emulation.programs`) if the emulator is absent, or the cross compiler before it has made
    the program of the process; `emulation.parameters` if the kernel has too many parameters.

    >>> from gossamer_emulation import RISCV64
    >>> from gossamer_ir.interchange.records import Signature
    >>> artifact = Artifact("toy", "1.0", "toy", Signature("twice", (), (), ()), b"")
    >>> emulated_kernel(artifact, EmulatedMachine(RISCV64._replace(emulator="qemu-of-nothing"), "rv64"))
    Traceback (most recent call last):
    ...
    gossamer_ir.errors.ArgumentError: The kernel 'twice' cannot run here: Emulation needs qemu-of-nothing...
    """
    _require_programs(artifact.signature, machine.architecture)
    _require_parameters(artifact.signature, machine.architecture)
    errors = _Errors()
    entry = prototype(artifact.signature)(_entry_function(artifact, emulator_of(machine), errors))
    address = ctypes.cast(entry, ctypes.c_void_p).value
    assert address is not None
    return NativeKernel(
        artifact,
        address,
        interruption=errors.raised_in_call,
        keep_alive=(entry,),
        emulator=machine.architecture.emulator,
    )


class _Errors(threading.local):
    """The error of the last call of a thread. Python only prints what a function raises that ctypes calls, so
    the call returns `INTERRUPTED`, and the kernel raises the error that is kept here."""

    error: BaseException | None = None

    def raised_in_call(self) -> BaseException:
        error, self.error = self.error, None
        return error if error is not None else InternalError("An emulated call has no error.")


def _entry_function(artifact: Artifact, emulator: Emulator, errors: _Errors) -> Callable[..., int]:
    signature = artifact.signature

    def entry(*values: Any) -> int:
        *passed, workspace = values
        try:
            arguments = _arguments(signature, dict(zip(signature.order, passed, strict=True)))
            result = emulator.call(artifact.code, arguments)
        except BaseException as error:  # noqa: BLE001  (the kernel raises it)
            errors.error = error
            return INTERRUPTED
        workspace.contents.failed_buffer = result.failed_buffer
        return result.status

    return entry


def _arguments(signature: Signature, values: Mapping[str, Any]) -> list[EmulatedArgument]:
    """Return the arguments of a call in the order of the parameters, from addresses and numbers."""
    scalars = {param.name: values[param.name] for param in signature.scalars}
    arrays = _Arrays(signature, values, scalars)
    by_name: dict[str, EmulatedArgument] = {
        param.name: _scalar_argument(param, values[param.name]) for param in signature.scalars
    }
    for param in signature.buffers:
        by_name[param.name] = EmulatedArray(
            arrays[param.buffer].view(np.uint8).data, param.is_written
        )
    return [by_name[name] for name in signature.order]


class _Arrays(dict[str, Array]):
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
        self[buffer_name] = array = self._array(param, self._values[param.name])
        return array

    def _array(self, param: BufferParam, address: int | None) -> Array:
        dtype = numpy_dtype(param)
        count = prod(evaluate_size(size, self._scalars, arrays=self) for size in param.shape)
        if not count:
            return np.empty(0, dtype)
        memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(address or 0)
        return np.frombuffer(memoryview(memory), dtype)


def _scalar_argument(param: ScalarParam, value: Any) -> EmulatedArgument:
    if not _is_float(param):
        return int(value)
    if param.dtype == "float32":
        return EmulatedFloat(struct.unpack("<q", struct.pack("<fi", value, -1))[0])
    return EmulatedFloat(struct.unpack("<q", struct.pack("<d", value))[0])


def _is_float(param: ScalarParam) -> bool:
    return param.dtype in ("float32", "float64")


def _require_programs(signature: Signature, architecture: Architecture) -> None:
    reason = reason_against_emulation(architecture)
    if reason is not None:
        raise ArgumentError(
            "emulation.programs", f"The kernel '{signature.entry}' cannot run here: {reason}"
        )


def _require_parameters(signature: Signature, architecture: Architecture) -> None:
    floats = sum(map(_is_float, signature.scalars))
    # The workspace is one more.
    integers = len(signature.order) - floats + 1
    if architecture.stack_arguments(integers=integers, floats=floats) > MAX_STACK_ARGUMENTS:
        raise ArgumentError(
            "emulation.parameters",
            f"The kernel '{signature.entry}' has {len(signature.order)} parameters, more than the emulator "
            f"passes: {MAX_STACK_ARGUMENTS} on the stack.",
        )
