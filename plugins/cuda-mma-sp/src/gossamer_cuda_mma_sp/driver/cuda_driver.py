"""The protocol of drivers: the functions that loading and launching kernels need."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

import msgspec
import numpy as np

from gossamer_cuda_mma_sp.device_code import GridShape
from gossamer_cuda_mma_sp.driver.device_limits import DeviceLimits
from gossamer_support.arrays import Array

DEFAULT_STREAM = 0
"""The handle of the default stream."""

LaunchArgument: TypeAlias = "np.int64 | np.uint64 | np.float32 | np.float64"
"""An integer, an address, or a float, each with the bits that the kernel takes."""


class KernelFunction(msgspec.Struct, frozen=True):
    """A kernel that is loaded: a handle of the driver, the most threads that its registers leave to a block,
    and the bytes of its shared memory, static, and dynamic, which a launch asks for."""

    handle: object
    block_threads: int
    shared_bytes: int
    dynamic_bytes: int = 0


class PinnedMemory(Protocol):
    """Integers of the host that kernels can access at an address of the device."""

    @property
    def address(self) -> int:
        """The address for kernels."""

    def read(self) -> Array:
        """Return the integers as they are now; nothing is waited for."""

    def write(self, values: Array) -> None:
        """Replace the integers."""


class CudaDriver(Protocol):
    """The functions of a driver, for one device. Addresses are those of the device, streams are handles.

    All but `current` and `limits` are called within `current()`. Functions raise `DriverError` if the
    driver refuses a call. Copies from and to the host and `wait` wait for the stream; nothing else waits.
    """

    @property
    def name(self) -> str:
        """The name of the driver, for messages."""

    @property
    def is_emulated(self) -> bool:
        """True if no GPU runs the kernels."""

    @property
    def limits(self) -> DeviceLimits:
        """The device and its limits."""

    def current(self) -> AbstractContextManager[None]:
        """Return a context within which the primary context of the device is current; after it, what was
        current before is current again."""

    def memory_info(self) -> tuple[int, int]:
        """Return the free and the total bytes of the device."""

    def allocate(self, size: int) -> int:
        """Return the address of new memory of at least one byte."""

    def free(self, address: int) -> None:
        """Free memory."""

    def pin(self, count: int) -> PinnedMemory:
        """Return memory for integers of 64 bits that the host and kernels access."""

    def copy_to_device(self, address: int, array: Array, *, stream: int) -> None:
        """Copy the elements of a contiguous array to an address. The array may change afterwards."""

    def copy_to_host(self, array: Array, address: int, *, stream: int) -> None:
        """Copy the elements at an address to a contiguous array, and wait for them."""

    def copy_on_device(self, address: int, source: int, size: int, *, stream: int) -> None:
        """Copy bytes of the device to an address of it; they do not overlap. Nothing waits for the copy."""

    def clear(self, address: int, size: int, *, stream: int) -> None:
        """Set bytes to zero."""

    def load_module(self, ptx: str) -> object:
        """Load PTX."""

    def unload_module(self, module: object) -> None:
        """Unload a module, none of whose kernels runs."""

    def get_function(
        self, module: object, symbol: str, *, dynamic_bytes: int = 0
    ) -> KernelFunction:
        """Return a kernel of a module, which has so many bytes of dynamic shared memory."""

    def prepare(self, function: KernelFunction, *, stream: int) -> None:
        """Load what launches of a kernel on a stream need, so that they load nothing, and allow it to have
        its dynamic shared memory."""

    def launch(
        self,
        function: KernelFunction,
        *,
        grid: GridShape,
        block: GridShape,
        arguments: Sequence[LaunchArgument],
        stream: int,
    ) -> None:
        """Run a kernel on a grid of blocks."""

    def wait(self, stream: int | None) -> None:
        """Wait for a stream, None for all of them, and raise the error of a kernel that failed."""

    def record(self, stream: int) -> object:
        """Return a new event, which is reached when all work on the stream is done."""

    def seconds_between(self, start: object, end: object) -> float:
        """Wait for two events, and return the seconds between them."""
