"""The driver on PyCUDA."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np

from gossamer_cuda_mma_sp.device_code import GridShape
from gossamer_cuda_mma_sp.driver.cuda_driver import (
    DEFAULT_STREAM,
    CudaDriver,
    KernelFunction,
    LaunchArgument,
    PinnedMemory,
)
from gossamer_cuda_mma_sp.driver.device_limits import device_limits
from gossamer_cuda_mma_sp.driver.driver_error import FATAL_ERRORS, OUT_OF_DEVICE_MEMORY, DriverError
from gossamer_support.arrays import Array

_NAMES_BY_TEXT = {text: name for name, text in FATAL_ERRORS.items()}


@contextmanager
def report_errors(module: Any) -> Iterator[None]:
    """Report errors of PyCUDA as those of the driver. It has their texts, and names of few."""
    try:
        yield
    except module.Error as error:
        # As in "cuMemAlloc failed: out of memory".
        function, _, text = str(error).partition(" failed: ")
        name = next(
            (name for message, name in _NAMES_BY_TEXT.items() if text.startswith(message)), None
        )
        if isinstance(error, module.MemoryError):
            name = OUT_OF_DEVICE_MEMORY
        raise DriverError(function, name or type(error).__name__, text) from error


class _LoadedModule(msgspec.Struct):
    """A module of PyCUDA, its PTX, and the module for streams of other packages, if one was needed."""

    module: Any
    ptx: str
    for_handles: object = None


class _LoadedFunction(msgspec.Struct):
    """A kernel of PyCUDA, and that for streams of other packages."""

    function: Any
    symbol: str
    module: _LoadedModule
    for_handles: KernelFunction | None = None


class PyCudaDriver:
    """A driver that uses PyCUDA.

    A stream of PyCUDA is one of its own objects. There is none for a stream of another package, which is
    known by its handle. Work on those is left to `for_handles`, a driver of the same primary context.
    """

    name = "PyCUDA"
    is_emulated = False

    def __init__(self, module: Any, number: int, *, for_handles: Callable[[], CudaDriver]) -> None:
        self._cuda = module
        self._device = module.Device(number)
        self._open_for_handles = for_handles
        self._for_handles: CudaDriver | None = None
        self._context: Any = None
        # PyCUDA frees memory whose object is collected.
        self._allocations: dict[int, Any] = {}
        attributes = module.device_attribute
        self.limits = device_limits(
            lambda attribute: int(self._device.get_attribute(getattr(attributes, attribute))),
            name=self._device.name(),
            driver_version=int(module.get_driver_version()),
        )

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the primary context current, and report errors of PyCUDA as those of the driver."""
        with report_errors(self._cuda):
            if self._context is None:
                self._context = self._device.retain_primary_context()
            self._context.push()
            try:
                yield
            finally:
                self._cuda.Context.pop()

    def memory_info(self) -> tuple[int, int]:
        """Return the free and the total bytes."""
        free, total = self._cuda.mem_get_info()
        return int(free), int(total)

    def allocate(self, size: int) -> int:
        """Return the address of new memory."""
        with report_errors(self._cuda):
            allocation = self._cuda.mem_alloc(size)
        self._allocations[int(allocation)] = allocation
        return int(allocation)

    def free(self, address: int) -> None:
        """Free memory."""
        self._allocations.pop(address).free()

    def pin(self, count: int) -> PinnedMemory:
        """Return memory of the host that is mapped."""
        flags = self._cuda.host_alloc_flags
        return _PageLockedMemory(
            self._cuda.pagelocked_empty(count, np.int64, mem_flags=flags.PORTABLE | flags.DEVICEMAP)
        )

    def copy_to_device(self, address: int, array: Array, *, stream: int) -> None:
        """Copy an array to an address."""
        if stream != DEFAULT_STREAM:
            self._by_handles().copy_to_device(address, array, stream=stream)
        elif array.nbytes:
            self._cuda.memcpy_htod(address, array)

    def copy_to_host(self, array: Array, address: int, *, stream: int) -> None:
        """Copy what is at an address to an array."""
        if stream != DEFAULT_STREAM:
            self._by_handles().copy_to_host(array, address, stream=stream)
        elif array.nbytes:
            self._cuda.memcpy_dtoh(array, address)

    def copy_on_device(self, address: int, source: int, size: int, *, stream: int) -> None:
        """Copy bytes at an address to another."""
        if stream != DEFAULT_STREAM:
            self._by_handles().copy_on_device(address, source, size, stream=stream)
        elif size:
            self._cuda.memcpy_dtod_async(address, source, size)

    def clear(self, address: int, size: int, *, stream: int) -> None:
        """Set bytes to zero."""
        if stream != DEFAULT_STREAM:
            self._by_handles().clear(address, size, stream=stream)
        elif size:
            self._cuda.memset_d8_async(address, 0, size)

    def load_module(self, ptx: str) -> object:
        """Load PTX, which the driver compiles."""
        with report_errors(self._cuda):
            return _LoadedModule(self._cuda.module_from_buffer(ptx.encode() + b"\0"), ptx)

    def unload_module(self, module: object) -> None:
        """Unload a module: PyCUDA does so when nothing refers to it."""
        assert isinstance(module, _LoadedModule)
        if module.for_handles is not None:
            self._by_handles().unload_module(module.for_handles)
        module.module = module.for_handles = None

    def get_function(
        self, module: object, symbol: str, *, dynamic_bytes: int = 0
    ) -> KernelFunction:
        """Return a kernel of a module."""
        assert isinstance(module, _LoadedModule)
        function = module.module.get_function(symbol)
        attributes = self._cuda.function_attribute
        threads, shared = (
            int(function.get_attribute(attribute))
            for attribute in (attributes.MAX_THREADS_PER_BLOCK, attributes.SHARED_SIZE_BYTES)
        )
        loaded = _LoadedFunction(function, symbol, module)
        return KernelFunction(loaded, threads, shared, dynamic_bytes)

    def prepare(self, function: KernelFunction, *, stream: int) -> None:
        """Allow a kernel to have its dynamic shared memory. Load it for streams of other packages, too, if
        the stream is one of them."""
        loaded = function.handle
        assert isinstance(loaded, _LoadedFunction)
        if stream != DEFAULT_STREAM:
            driver = self._by_handles()
            driver.prepare(self._function_for_handles(function, driver), stream=stream)
        elif function.dynamic_bytes:
            attribute = self._cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
            with report_errors(self._cuda):
                loaded.function.set_attribute(attribute, function.dynamic_bytes)

    def launch(
        self,
        function: KernelFunction,
        *,
        grid: GridShape,
        block: GridShape,
        arguments: Sequence[LaunchArgument],
        stream: int,
    ) -> None:
        """Run a kernel."""
        loaded = function.handle
        assert isinstance(loaded, _LoadedFunction)
        if stream == DEFAULT_STREAM:
            with report_errors(self._cuda):
                loaded.function(*arguments, grid=grid, block=block, shared=function.dynamic_bytes)
            return
        driver = self._by_handles()
        driver.launch(
            self._function_for_handles(function, driver),
            grid=grid,
            block=block,
            arguments=arguments,
            stream=stream,
        )

    def _function_for_handles(self, function: KernelFunction, driver: CudaDriver) -> KernelFunction:
        loaded = function.handle
        assert isinstance(loaded, _LoadedFunction)
        if loaded.for_handles is None:
            module = loaded.module
            if module.for_handles is None:
                module.for_handles = driver.load_module(module.ptx)
            loaded.for_handles = driver.get_function(
                module.for_handles, loaded.symbol, dynamic_bytes=function.dynamic_bytes
            )
        return loaded.for_handles

    def _by_handles(self) -> CudaDriver:
        if self._for_handles is None:
            self._for_handles = self._open_for_handles()
        return self._for_handles

    def wait(self, stream: int | None) -> None:
        """Wait for a stream, or for all."""
        with report_errors(self._cuda):
            if stream is None:
                self._cuda.Context.synchronize()
            else:
                self._by_handles().wait(stream)

    def record(self, stream: int) -> object:
        """Return a new event on a stream."""
        return self._by_handles().record(stream)

    def seconds_between(self, start: object, end: object) -> float:
        """Return the seconds between two events."""
        return self._by_handles().seconds_between(start, end)


class _PageLockedMemory:
    """An array of PyCUDA in memory of the host at one address for both sides."""

    def __init__(self, array: Array) -> None:
        self._array = array

    @property
    def address(self) -> int:
        """The address for kernels."""
        return int(self._array.ctypes.data)

    def read(self) -> Array:
        """Return a copy of the integers."""
        return self._array.copy()

    def write(self, values: Array) -> None:
        """Replace the integers."""
        self._array[:] = values
