"""A GPU with its memory: errors of its driver become those of calls."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np

from gossamer_backend.plugin_api import NOT_GUARDED, Device
from gossamer_cuda_mma_sp.device.memory_pool import MemoryBlock, MemoryPool
from gossamer_cuda_mma_sp.driver.cuda_driver import CudaDriver, PinnedMemory
from gossamer_cuda_mma_sp.driver.device_limits import DeviceLimits
from gossamer_cuda_mma_sp.driver.driver_error import OUT_OF_DEVICE_MEMORY, DriverError
from gossamer_cuda_mma_sp.driver.open_driver import open_driver
from gossamer_cuda_mma_sp.interpreter.memory import DeviceFaultError
from gossamer_cuda_mma_sp.target.gpu import DEVICE_KIND
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.kernel_abi import WORKSPACE_FIELDS


class GpuDevice:
    """A GPU that runs kernels by a driver."""

    def __init__(self, driver: CudaDriver, number: int = 0) -> None:
        self.driver, self.number = driver, number
        self.device = Device(DEVICE_KIND, number)
        self.pool = MemoryPool(driver)
        self._lost: str | None = None
        self._retired: list[tuple[object, PinnedMemory]] = []
        self._unused_workspaces: list[PinnedMemory] = []
        self._lock = threading.Lock()

    @property
    def limits(self) -> DeviceLimits:
        """The properties of the device, and the limits of a launch."""
        return self.driver.limits

    @contextmanager
    def calling(self, what: str) -> Iterator[None]:
        """Make the device current, and raise errors of its driver as those of `what`, a noun.

        `ArgumentError`: `cuda.fault` if a kernel was stopped, `cuda.context` if the context is lost since an
        earlier kernel, `cuda.call` for what else the driver refuses. `MemoryError` if there is no memory.
        """
        if self._lost is not None:
            raise ArgumentError(
                "cuda.context",
                f"{what} cannot run: the context of GPU {self.number} is lost since an earlier error. "
                f"{self._lost}",
                hint="Start a new process.",
            )
        try:
            with self.driver.current():
                yield
        except DeviceFaultError as error:
            raise ArgumentError("cuda.fault", f"{what} was stopped: {error}.") from error
        except DriverError as error:
            raise self._call_error(what, error) from error

    def _call_error(self, what: str, error: DriverError) -> ArgumentError:
        if not error.loses_context:
            return ArgumentError("cuda.call", f"{what} failed: {error}.")
        message = f"{what}, or a kernel before it, was stopped: {error}."
        self._lost = message
        return ArgumentError(
            "cuda.fault",
            f"{message} The context of GPU {self.number} is lost, and with it all arrays on it.",
            hint="Check steps of the schedule that begin with unsafe_, and the index arrays. Start a new "
            "process to use the GPU again.",
        )

    def allocate(self, size: int, *, stream: int, what: str) -> MemoryBlock:
        """Return memory from the pool; called within `calling`. `MemoryError` names the bytes that are
        wanted and free."""
        try:
            return self.pool.take(size, stream)
        except DriverError as error:
            if error.name != OUT_OF_DEVICE_MEMORY:
                raise
        self.pool.release()
        try:
            return self.pool.take(size, stream)
        except DriverError as error:
            if error.name != OUT_OF_DEVICE_MEMORY:
                raise
            free, total = self.driver.memory_info()
            raise MemoryError(
                f"{what} needs {size:,} bytes of memory on GPU {self.number} ({self.limits.name}), and "
                f"{free:,} of {total:,} bytes are free."
            ) from error

    def workspace(self) -> PinnedMemory:
        """Return memory for the workspace of calls, which the host reads without waiting."""
        with self._lock:
            if self._unused_workspaces:
                workspace = self._unused_workspaces.pop()
            else:
                workspace = self.driver.pin(len(WORKSPACE_FIELDS))
        workspace.write(np.full(len(WORKSPACE_FIELDS), NOT_GUARDED, np.int64))
        return workspace

    def retire(self, module: object, workspace: PinnedMemory) -> None:
        """Note that a module is not called any more. A kernel of it may still run."""
        self._retired.append((module, workspace))

    def reclaim(self) -> None:
        """Unload retired modules, when all work is done; called before another module is loaded, which waits
        anyway."""
        if not self._retired:
            return
        self.driver.wait(None)
        while self._retired:
            module, workspace = self._retired.pop()
            if module is not None:
                self.driver.unload_module(module)
            self._unused_workspaces.append(workspace)


@cache
def gpu_device(name: str | None, number: int) -> GpuDevice:
    """Return the GPU of a number with the driver of a name, None for the first that is installed. The errors
    are those of `open_driver`."""
    return GpuDevice(open_driver(name, number), number)
