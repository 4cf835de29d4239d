"""Kernels of a device on arrays of the host, which are copied to the device and back at each call."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from gossamer_backend.plugin_api import (
    NOT_GUARDED,
    OK,
    OUT_OF_BOUNDS,
    Artifact,
    CallOutcome,
    NativeKernel,
    python_kernel,
)
from gossamer_cuda_mma_sp.device.gpu_device import GpuDevice
from gossamer_cuda_mma_sp.device.host_program import HostProgram
from gossamer_cuda_mma_sp.device.memory_pool import MemoryBlock
from gossamer_cuda_mma_sp.device_code import DeviceCode
from gossamer_cuda_mma_sp.driver.cuda_driver import DEFAULT_STREAM
from gossamer_ir.interchange.records import Signature
from gossamer_support.arrays import Array


def copying_kernel(artifact: Artifact, device: GpuDevice) -> NativeKernel:
    """Return the kernel of an artifact on arrays of the host, run by a device. A kernel runs one call at a
    time."""
    signature = artifact.signature
    program = HostProgram(DeviceCode.decode(artifact.code), device)
    lock = threading.Lock()

    def run(arrays: Mapping[str, Array], scalars: Mapping[str, Any]) -> CallOutcome:
        with lock, device.calling(f"The kernel '{signature.entry}'"):
            copies = _Copies(signature, device)
            try:
                failed = copies.run(program, arrays, scalars)
            finally:
                # An error refers to the frames of the call, and so to this.
                copies.release()
        return CallOutcome(OK if failed == NOT_GUARDED else OUT_OF_BOUNDS, failed)

    return python_kernel(
        artifact, run, emulator=device.driver.name if device.driver.is_emulated else None
    )


class _Copies:
    """The arrays of a call on the device, and the memory of the call."""

    def __init__(self, signature: Signature, device: GpuDevice) -> None:
        self._signature, self._device = signature, device
        self._blocks: list[MemoryBlock] = []

    def run(
        self, program: HostProgram, arrays: Mapping[str, Array], scalars: Mapping[str, Any]
    ) -> int:
        """Run the kernels, and copy back what they write. Return the number of the buffer whose bounds check
        failed."""
        driver, params = self._device.driver, self._signature.buffers
        addresses = {param.name: self._copy(param.name, arrays[param.buffer]) for param in params}
        steps = program.steps(scalars, addresses, arrays=arrays, allocate=self._allocate)
        program.run(steps, stream=DEFAULT_STREAM)
        driver.wait(DEFAULT_STREAM)
        for param in params:
            if param.is_written:
                address = addresses[param.name]
                driver.copy_to_host(arrays[param.buffer], address, stream=DEFAULT_STREAM)
        return program.failed_buffer()

    def release(self) -> None:
        """Give the memory of the call back."""
        self._blocks.clear()

    def _allocate(self, name: str, size: int) -> int:
        what = f"The array '{name}' of '{self._signature.entry}'"
        block = self._device.allocate(size, stream=DEFAULT_STREAM, what=what)
        self._blocks.append(block)
        return block.address

    def _copy(self, name: str, array: Array) -> int:
        address = self._allocate(name, array.nbytes)
        self._device.driver.copy_to_device(address, array, stream=DEFAULT_STREAM)
        return address
