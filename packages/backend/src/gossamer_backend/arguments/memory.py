"""The memory of the arrays that a kernel takes."""

from __future__ import annotations

from typing import Protocol

from gossamer_backend.arguments.array_view import ArrayView
from gossamer_backend.arguments.device import HOST, Device
from gossamer_support.arrays import Array


class Memory(Protocol):
    """The memory of a device: which one it is, and how its elements are read."""

    @property
    def device(self) -> Device:
        """The device whose arrays are accepted; others are refused by name."""

    def wait(self, stream: object) -> None:
        """Wait until all work on a stream is done, before elements are read. The stream is that of a context,
        or the integer by which `__cuda_array_interface__` names the one that writes an array."""

    def to_host(self, view: ArrayView) -> Array:
        """Return a contiguous array as one of NumPy. Only arrays that hold sizes are read, and those with
        facts that a compiled check does not find to hold."""


class HostMemory:
    """The memory of this process.

    >>> HOST_MEMORY.device.text
    'cpu'
    """

    device = HOST

    def wait(self, stream: object) -> None:
        """Return at once: all calls have ended."""

    def to_host(self, view: ArrayView) -> Array:
        """Return the array itself."""
        array: Array = view.array
        return array


HOST_MEMORY = HostMemory()
