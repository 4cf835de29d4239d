"""The driver that calls the functions of the driver API, by the bindings of Python or by ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gossamer_cuda_mma_sp.device_code import GridShape
from gossamer_cuda_mma_sp.driver.cuda_driver import KernelFunction, LaunchArgument, PinnedMemory
from gossamer_cuda_mma_sp.driver.device_limits import device_limits
from gossamer_cuda_mma_sp.driver.library_calls import BindingsCalls, CtypesCalls
from gossamer_support.arrays import Array

_FUNCTION_THREADS, _FUNCTION_SHARED, _FUNCTION_DYNAMIC = 0, 1, 8
"""Attributes of functions (`CUfunction_attribute`)."""
_PORTABLE, _MAPPED = 1, 2
"""Flags of `cuMemHostAlloc`."""
_ITEM_BYTES = 8


class LibraryDriver:
    """A driver that calls the driver API. `attribute` returns a number of `CUdevice_attribute`, or of
    `CUfunction_attribute`, as the calls take it."""

    is_emulated = False

    def __init__(
        self,
        calls: CtypesCalls | BindingsCalls,
        device: Any,
        *,
        name: str,
        device_attribute: Callable[[str], Any],
        function_attribute: Callable[[int], Any],
    ) -> None:
        self.name = name
        self._calls, self._device = calls, device
        self._function_attribute = function_attribute
        self._context: Any = None
        self.limits = device_limits(
            lambda attribute: int(
                calls("cuDeviceGetAttribute", device_attribute(attribute), device)
            ),
            name=calls.device_name(device),
            driver_version=int(calls("cuDriverGetVersion")),
        )

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the primary context current. It is the one that other libraries use, such as PyTorch."""
        if self._context is None:
            # It is retained until the process ends: arrays outlive kernels.
            self._context = self._calls("cuDevicePrimaryCtxRetain", self._device)
        self._calls("cuCtxPushCurrent", self._context)
        try:
            yield
        finally:
            self._calls("cuCtxPopCurrent")

    def memory_info(self) -> tuple[int, int]:
        """Return the free and the total bytes."""
        free, total = self._calls("cuMemGetInfo")
        return int(free), int(total)

    def allocate(self, size: int) -> int:
        """Return the address of new memory."""
        return int(self._calls("cuMemAlloc", size))

    def free(self, address: int) -> None:
        """Free memory."""
        self._calls("cuMemFree", address)

    def pin(self, count: int) -> PinnedMemory:
        """Return memory of the host that is mapped. Unified addressing, which all 64-bit systems have, gives
        it one address for both sides."""
        flags = _PORTABLE | _MAPPED
        return MappedMemory(int(self._calls("cuMemHostAlloc", count * _ITEM_BYTES, flags)), count)

    def copy_to_device(self, address: int, array: Array, *, stream: int) -> None:
        """Copy an array to an address."""
        if array.nbytes:
            self._calls("cuMemcpyHtoDAsync", address, array.ctypes.data, array.nbytes, stream)
            # The array may be pinned: only then does the copy not read all of it before it returns.
            self.wait(stream)

    def copy_to_host(self, array: Array, address: int, *, stream: int) -> None:
        """Copy what is at an address to an array."""
        if array.nbytes:
            self._calls("cuMemcpyDtoHAsync", array.ctypes.data, address, array.nbytes, stream)
            self.wait(stream)

    def copy_on_device(self, address: int, source: int, size: int, *, stream: int) -> None:
        """Copy bytes at an address to another."""
        if size:
            self._calls("cuMemcpyDtoDAsync", address, source, size, stream)

    def clear(self, address: int, size: int, *, stream: int) -> None:
        """Set bytes to zero."""
        if size:
            self._calls("cuMemsetD8Async", address, 0, size, stream)

    def load_module(self, ptx: str) -> object:
        """Load PTX, which the driver compiles."""
        text = ctypes.create_string_buffer(ptx.encode())
        return self._calls("cuModuleLoadData", ctypes.addressof(text))

    def unload_module(self, module: object) -> None:
        """Unload a module."""
        self._calls("cuModuleUnload", module)

    def get_function(
        self, module: object, symbol: str, *, dynamic_bytes: int = 0
    ) -> KernelFunction:
        """Return a kernel of a module."""
        handle = self._calls("cuModuleGetFunction", module, symbol.encode())
        threads, shared = (
            int(self._calls("cuFuncGetAttribute", self._function_attribute(number), handle))
            for number in (_FUNCTION_THREADS, _FUNCTION_SHARED)
        )
        return KernelFunction(handle, threads, shared, dynamic_bytes)

    def prepare(self, function: KernelFunction, *, stream: int) -> None:
        """Allow a kernel to have its dynamic shared memory. It is loaded for all streams."""
        if function.dynamic_bytes:
            number = self._function_attribute(_FUNCTION_DYNAMIC)
            self._calls("cuFuncSetAttribute", function.handle, number, function.dynamic_bytes)

    def launch(
        self,
        function: KernelFunction,
        *,
        grid: GridShape,
        block: GridShape,
        arguments: Sequence[LaunchArgument],
        stream: int,
    ) -> None:
        """Run a kernel. The driver copies the arguments before it returns."""
        values = [np.asarray(argument) for argument in arguments]
        pointers = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
        arguments_address = ctypes.addressof(pointers)
        shared = function.dynamic_bytes
        self._calls(
            "cuLaunchKernel", function.handle, *grid, *block, shared, stream, arguments_address, 0
        )

    def wait(self, stream: int | None) -> None:
        """Wait for a stream, or for all."""
        if stream is None:
            self._calls("cuCtxSynchronize")
        else:
            self._calls("cuStreamSynchronize", stream)

    def record(self, stream: int) -> object:
        """Return a new event on a stream."""
        event = self._calls("cuEventCreate", 0)
        self._calls("cuEventRecord", event, stream)
        return event

    def seconds_between(self, start: object, end: object) -> float:
        """Return the seconds between two events, which are destroyed."""
        self._calls("cuEventSynchronize", end)
        milliseconds = float(self._calls("cuEventElapsedTime", start, end))
        for event in (start, end):
            self._calls("cuEventDestroy", event)
        return milliseconds / 1e3


class MappedMemory:
    """Memory of the host at one address for both sides."""

    def __init__(self, address: int, count: int) -> None:
        self.address = address
        memory = (ctypes.c_int64 * count).from_address(address)
        self._values: Array = np.frombuffer(memoryview(memory), np.int64)

    def read(self) -> Array:
        """Return a copy of the integers."""
        return np.array(self._values)

    def write(self, values: Array) -> None:
        """Replace the integers."""
        self._values[:] = values
