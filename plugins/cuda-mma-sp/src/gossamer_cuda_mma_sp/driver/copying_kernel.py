"""Kernels of a device on arrays of the host, which are copied to the device and back at each call.

A `NativeKernel` calls the address of a function. Here this is a function in Python, called by ctypes. So all
that checks, binds and plans calls is the same as for native code.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from gossamer_backend.plugin_api import (
    INTERRUPTED,
    NOT_GUARDED,
    OK,
    OUT_OF_BOUNDS,
    Artifact,
    NativeKernel,
    evaluate_size,
    numpy_dtype,
    prototype,
)
from gossamer_cuda_mma_sp.device_code import DeviceCode
from gossamer_cuda_mma_sp.driver.cuda_driver import CudaDriver
from gossamer_cuda_mma_sp.driver.host_program import HostProgram
from gossamer_cuda_mma_sp.interpreter.memory import DeviceFaultError
from gossamer_ir.errors import ArgumentError, InternalError
from gossamer_ir.interchange.kernel_abi import WORKSPACE_FIELDS, workspace_field
from gossamer_ir.interchange.records import Signature
from gossamer_ir.support.arrays import Array


def copying_kernel(artifact: Artifact, driver: CudaDriver) -> NativeKernel:
    """Return the kernel of an artifact on arrays of the host, run by a driver. A kernel runs one call at a
    time."""
    errors = _LastError()
    entry = prototype(artifact.signature)(_entry_function(artifact, driver, errors))
    address = ctypes.cast(entry, ctypes.c_void_p).value
    assert address is not None
    return NativeKernel(
        artifact,
        address,
        interruption=errors.raised_in_call,
        keep_alive=(entry,),
        emulator=driver.name,
    )


class _LastError(threading.local):
    """The error of the last call of a thread: Python only prints what a function raises that ctypes calls."""

    error: BaseException | None = None

    def raised_in_call(self) -> BaseException:
        error, self.error = self.error, None
        return error if error is not None else InternalError("A call of a kernel has no error.")


def _entry_function(
    artifact: Artifact, driver: CudaDriver, errors: _LastError
) -> Callable[..., int]:
    signature = artifact.signature
    program = HostProgram(DeviceCode.decode(artifact.code), driver)
    lock = threading.Lock()

    def entry(*values: Any) -> int:
        *passed, workspace = values
        try:
            with lock:
                failed = _call(
                    signature, program, driver, dict(zip(signature.order, passed, strict=True))
                )
        except DeviceFaultError as error:
            message = f"The kernel '{signature.entry}' was stopped: {error}."
            errors.error = ArgumentError("cuda.fault", message)
            return INTERRUPTED
        except BaseException as error:  # noqa: BLE001  (the kernel raises it)
            errors.error = error
            return INTERRUPTED
        workspace.contents.failed_buffer = failed
        return OK if failed == NOT_GUARDED else OUT_OF_BOUNDS

    return entry


def _call(
    signature: Signature, program: HostProgram, driver: CudaDriver, values: Mapping[str, Any]
) -> int:
    """Copy the arrays of a call to the device, run the kernels, and copy back what they write. Return the
    number of the buffer whose bounds check failed."""
    scalars = {param.name: values[param.name] for param in signature.scalars}
    arrays = _HostArrays(signature, values, scalars)
    addresses: dict[str, int] = {}
    workspace = np.full(len(WORKSPACE_FIELDS), NOT_GUARDED, np.int64)
    at = _copied(driver, workspace)
    try:
        for param in signature.buffers:
            addresses[param.name] = _copied(driver, arrays[param.buffer])
        program.run(scalars, addresses, at, arrays=arrays)
        driver.copy_to_host(workspace, at)
        for param in signature.buffers:
            if param.is_written:
                driver.copy_to_host(arrays[param.buffer], addresses[param.name])
    finally:
        for address in (*addresses.values(), at):
            driver.free(address)
    return int(workspace[workspace_field("failed_buffer")])


def _copied(driver: CudaDriver, array: Array) -> int:
    address = driver.allocate(array.nbytes)
    driver.copy_to_device(address, array)
    return address


class _HostArrays(dict[str, Array]):
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
        address = self._values[param.name]
        self[buffer_name] = np.empty(0, dtype)
        if count:
            memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
            self[buffer_name] = np.frombuffer(memoryview(memory), dtype)
        return self[buffer_name]
