"""The context of a call: the device, one of its streams, and where scratch memory comes from."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from gossamer_backend.arguments.device import HOST, Device
from gossamer_ir.errors import ArgumentError

ScratchAllocator: TypeAlias = Callable[[int], object]
"""Returns an array on the device of a context with a number of bytes, in any form of which there is a view.
The memory is aligned for all elements, and is free again when the array is collected."""


class CallContext(NamedTuple):
    """The device and the stream of a call.

    `stream` is an object of the backend that orders work on the device, such as the handle of a stream of
    CUDA; None is the default stream. A call puts the kernel on the stream, and may return before it has run.
    `scratch` returns the memory that the signature of a kernel requires; None leaves that to the
    backend. A bound call asks once and keeps the memory, so that its address is the same in each run.

    >>> CallContext().device.text, CallContext().stream is None
    ('cpu', True)
    """

    device: Device = HOST
    stream: object = None
    scratch: ScratchAllocator | None = None


def require_host_context(context: CallContext | None, entry: str) -> None:
    """Raise `ArgumentError` (`kernel.context`) for a context of another device or with a stream: a kernel in
    this process has none."""
    if context is None:
        return
    if context.device != HOST:
        raise ArgumentError(
            "kernel.context",
            f"The kernel '{entry}' runs on 'cpu', and the context is one of the device "
            f"'{context.device.text}'.",
            hint="Compile the program for a target of that device.",
        )
    if context.stream is not None:
        raise ArgumentError(
            "kernel.context",
            f"The kernel '{entry}' runs on 'cpu', which has no streams.",
            hint="Leave the stream of the context out.",
        )
