"""Kernels of a device on arrays of the host, which are copied to the device and back at each call."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from gossamer_backend.plugin_api import (
    NOT_GUARDED,
    OK,
    OUT_OF_BOUNDS,
    Artifact,
    CallOutcome,
    NativeKernel,
    python_kernel,
)
from gossamer_cuda_mma_sp.device_code import DeviceCode
from gossamer_cuda_mma_sp.driver.cuda_driver import CudaDriver
from gossamer_cuda_mma_sp.driver.host_program import HostProgram
from gossamer_cuda_mma_sp.interpreter.memory import DeviceFaultError
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.kernel_abi import WORKSPACE_FIELDS, workspace_field
from gossamer_ir.interchange.records import Signature
from gossamer_ir.support.arrays import Array


def copying_kernel(artifact: Artifact, driver: CudaDriver) -> NativeKernel:
    """Return the kernel of an artifact on arrays of the host, run by a driver. A kernel runs one call at a
    time."""
    signature = artifact.signature
    program = HostProgram(DeviceCode.decode(artifact.code), driver)
    lock = threading.Lock()

    def run(arrays: Mapping[str, Array], scalars: Mapping[str, Any]) -> CallOutcome:
        try:
            with lock:
                failed = _call(signature, program, driver, arrays, scalars)
        except DeviceFaultError as error:
            message = f"The kernel '{signature.entry}' was stopped: {error}."
            raise ArgumentError("cuda.fault", message) from error
        return CallOutcome(OK if failed == NOT_GUARDED else OUT_OF_BOUNDS, failed)

    return python_kernel(artifact, run, emulator=driver.name)


def _call(
    signature: Signature,
    program: HostProgram,
    driver: CudaDriver,
    arrays: Mapping[str, Array],
    scalars: Mapping[str, Any],
) -> int:
    """Copy the arrays of a call to the device, run the kernels, and copy back what they write. Return the
    number of the buffer whose bounds check failed."""
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
