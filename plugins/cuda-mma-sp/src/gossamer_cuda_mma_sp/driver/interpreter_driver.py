"""A driver whose device is an interpreter of PTX: kernels run, and are checked, on any machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gossamer_cuda_mma_sp.device_code import GridShape
from gossamer_cuda_mma_sp.driver.cuda_driver import CudaDriver
from gossamer_cuda_mma_sp.interpreter.grid import run_grid
from gossamer_cuda_mma_sp.interpreter.memory import GlobalMemory
from gossamer_cuda_mma_sp.interpreter.program import KernelProgram, parse_ptx
from gossamer_ir.support.arrays import Array


class InterpreterDriver(CudaDriver):
    """Runs kernels at their launch, on memory of its own.

    >>> import numpy as np
    >>> driver = InterpreterDriver()
    >>> at = driver.allocate(8)
    >>> driver.copy_to_device(at, np.array([1, 2], np.int32))
    >>> found = np.zeros(2, np.int32)
    >>> driver.copy_to_host(found, at)
    >>> found.tolist()
    [1, 2]
    """

    name = "the interpreter of PTX"

    def __init__(self) -> None:
        self._memory = GlobalMemory()

    def allocate(self, size: int) -> int:
        """Return the address of new memory, which must be written before it is read."""
        return self._memory.allocate(size)

    def free(self, address: int) -> None:
        """Free memory; a later access to it is an error."""
        self._memory.free(address)

    def copy_to_device(self, address: int, array: Array) -> None:
        """Copy the elements of an array to an address."""
        self._memory.write(address, array)

    def copy_to_host(self, array: Array, address: int) -> None:
        """Copy the elements at an address to an array."""
        raw = self._memory.read(address, array.nbytes)
        array[...] = raw.view(array.dtype).reshape(array.shape)

    def load_module(self, ptx: str) -> Mapping[str, KernelProgram]:
        """Parse PTX."""
        return parse_ptx(ptx)

    def get_function(self, module: object, symbol: str) -> KernelProgram:
        """Return a kernel of a module."""
        assert isinstance(module, Mapping)
        kernel = module[symbol]
        assert isinstance(kernel, KernelProgram)
        return kernel

    def launch(
        self,
        function: object,
        *,
        grid: GridShape,
        block: GridShape,
        arguments: Sequence[int | float],
    ) -> None:
        """Run a kernel; raise `DeviceFaultError` for what it must not do."""
        assert isinstance(function, KernelProgram)
        run_grid(function, self._memory, grid=grid, block=block, arguments=arguments)

    def synchronize(self) -> None:
        """Return: nothing is left to be done."""
