"""A driver whose device is an interpreter of PTX: kernels run, and are checked, on any machine."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from gossamer_cuda_mma_sp.device_code import GridShape
from gossamer_cuda_mma_sp.driver.cuda_driver import KernelFunction, LaunchArgument, PinnedMemory
from gossamer_cuda_mma_sp.driver.device_limits import INTERPRETED
from gossamer_cuda_mma_sp.interpreter.grid import run_grid
from gossamer_cuda_mma_sp.interpreter.memory import DeviceFaultError, GlobalMemory
from gossamer_cuda_mma_sp.interpreter.program import KernelProgram, parse_ptx
from gossamer_support.arrays import Array


class InterpreterDriver:
    """Runs kernels at their launch, on memory of its own. All streams are one.

    >>> driver = InterpreterDriver()
    >>> at = driver.allocate(8)
    >>> driver.copy_to_device(at, np.array([1, 2], np.int32), stream=0)
    >>> found = np.zeros(2, np.int32)
    >>> driver.copy_to_host(found, at, stream=0)
    >>> found.tolist()
    [1, 2]
    """

    name = "the interpreter of PTX"
    is_emulated = True
    limits = INTERPRETED

    def __init__(self) -> None:
        self._memory = GlobalMemory()
        self.bank_conflicts = 0
        """The rows of matrices in shared memory that were loaded after others in the same banks."""

    @contextmanager
    def current(self) -> Iterator[None]:
        """Do nothing: there is one device."""
        yield

    def memory_info(self) -> tuple[int, int]:
        """Return the bytes of the memory, none of which is free: it grows."""
        return 0, self._memory.bytes.size

    def allocate(self, size: int) -> int:
        """Return the address of new memory, which must be written before it is read."""
        return self._memory.allocate(size)

    def free(self, address: int) -> None:
        """Free memory; a later access to it is an error."""
        self._memory.free(address)

    def pin(self, count: int) -> PinnedMemory:
        """Return integers in the memory, which kernels find there."""
        return _Integers(self._memory, count)

    def copy_to_device(self, address: int, array: Array, *, stream: int) -> None:
        """Copy the elements of an array to an address."""
        self._memory.write(address, array)

    def copy_to_host(self, array: Array, address: int, *, stream: int) -> None:
        """Copy the elements at an address to an array."""
        raw = self._memory.read(address, array.nbytes)
        array[...] = raw.view(array.dtype).reshape(array.shape)

    def copy_on_device(self, address: int, source: int, size: int, *, stream: int) -> None:
        """Copy bytes at an address to another."""
        self._memory.write(address, self._memory.read(source, size))

    def clear(self, address: int, size: int, *, stream: int) -> None:
        """Set bytes to zero."""
        self._memory.write(address, np.zeros(size, np.uint8))

    def load_module(self, ptx: str) -> object:
        """Parse PTX."""
        return parse_ptx(ptx)

    def unload_module(self, module: object) -> None:
        """Return: the program is collected."""

    def get_function(
        self, module: object, symbol: str, *, dynamic_bytes: int = 0
    ) -> KernelFunction:
        """Return a kernel of a module."""
        assert isinstance(module, Mapping)
        kernel = module[symbol]
        assert isinstance(kernel, KernelProgram)
        static = kernel.shared_bytes - kernel.dynamic_bytes
        return KernelFunction(kernel, INTERPRETED.block_threads, static, dynamic_bytes)

    def prepare(self, function: KernelFunction, *, stream: int) -> None:
        """Return: nothing is left to be loaded."""

    def launch(
        self,
        function: KernelFunction,
        *,
        grid: GridShape,
        block: GridShape,
        arguments: Sequence[LaunchArgument],
        stream: int,
    ) -> None:
        """Run a kernel; raise `DeviceFaultError` for what it must not do."""
        kernel = function.handle
        assert isinstance(kernel, KernelProgram)
        if function.dynamic_bytes != kernel.dynamic_bytes:
            raise DeviceFaultError(
                f"the kernel uses {kernel.dynamic_bytes} bytes of dynamic shared memory, and the launch asks "
                f"for {function.dynamic_bytes}"
            )
        values = [argument.item() for argument in arguments]
        self.bank_conflicts += run_grid(
            kernel, self._memory, grid=grid, block=block, arguments=values
        )

    def wait(self, stream: int | None) -> None:
        """Return: nothing is left to be done."""

    def record(self, stream: int) -> object:
        """Return the time."""
        return time.perf_counter()

    def seconds_between(self, start: object, end: object) -> float:
        """Return the seconds between two times."""
        assert isinstance(start, float)
        assert isinstance(end, float)
        return end - start


class _Integers:
    """Integers in the memory of the interpreter."""

    def __init__(self, memory: GlobalMemory, count: int) -> None:
        self._memory, self._size = memory, 8 * count
        self.address = memory.allocate(self._size)

    def read(self) -> Array:
        """Return a copy of the integers."""
        return self._memory.read(self.address, self._size).view(np.int64)

    def write(self, values: Array) -> None:
        """Replace the integers."""
        self._memory.write(self.address, values)
