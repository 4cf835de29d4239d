"""What a loader of kernels needs of a driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gossamer_cuda_mma_sp.device_code import GridShape
from gossamer_ir.support.arrays import Array


class CudaDriver(Protocol):
    """The functions of a driver, for one device. Addresses are those of the device.

    A module and a function are what `load_module` and `get_function` returned, of any type.
    """

    @property
    def name(self) -> str:
        """The name of the driver, for messages."""

    def allocate(self, size: int) -> int:
        """Return the address of new memory of a number of bytes."""

    def free(self, address: int) -> None:
        """Free memory."""

    def copy_to_device(self, address: int, array: Array) -> None:
        """Copy the elements of a contiguous array to an address."""

    def copy_to_host(self, array: Array, address: int) -> None:
        """Copy the elements at an address to a contiguous array."""

    def load_module(self, ptx: str) -> object:
        """Load PTX."""

    def get_function(self, module: object, symbol: str) -> object:
        """Return a kernel of a module."""

    def launch(
        self,
        function: object,
        *,
        grid: GridShape,
        block: GridShape,
        arguments: Sequence[int | float],
    ) -> None:
        """Run a kernel on a grid of blocks. Arguments are integers of 64 bits, addresses, and floats."""

    def synchronize(self) -> None:
        """Wait for all kernels, and raise the error of one that failed."""
