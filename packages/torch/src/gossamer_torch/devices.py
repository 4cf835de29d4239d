"""Tensors on a GPU as arrays for the kernels of an installed backend, on torch's current stream."""

from __future__ import annotations

from typing import Any

import torch

import gossamer as gs
from gossamer_backend import CallContext, Device
from gossamer_ir.errors import ArgumentError

DEVICE_TYPES = ("cpu", "cuda")
"""The types of devices for which operators have kernels."""


def target_of(tensor: torch.Tensor) -> str | None:
    """Return the target whose kernels take a tensor that is on a GPU; None if no backend for it is
    installed."""
    kind, number = tensor.__dlpack_device__()
    return gs.device_target(Device(int(kind), number))


def required_target(name: str, tensor: torch.Tensor) -> str:
    """Return the target for a tensor on a GPU. Raise `ArgumentError` (`operand.device`) if there is none."""
    target = target_of(tensor)
    if target is None:
        raise ArgumentError(
            "operand.device",
            f"'{name}' is on the device '{tensor.device}', and no backend for it is installed.",
            hint=f"Install one, such as gossamer-cuda-mma-sp, or copy the tensor with {name}.cpu().",
        )
    return target


class DeviceTensor:
    """A tensor on a GPU, for kernels: they read its memory where it is.

    It has the CUDA array interface only: torch exports a tensor by DLPack only while its GPU is the current
    one.
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor.detach().contiguous()
        self.device = tensor.device.index

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The description of the memory by torch."""
        interface: dict[str, Any] = self.tensor.__cuda_array_interface__
        return interface


def call_context(tensor: torch.Tensor) -> CallContext:
    """Return the context of a call on the GPU of a tensor: torch's current stream there, and scratch memory
    of torch, which it gives to no other stream before the call has run."""
    kind, number = tensor.__dlpack_device__()

    def scratch(size: int) -> DeviceTensor:
        return DeviceTensor(tensor.new_empty(size, dtype=torch.uint8))

    stream = torch.cuda.current_stream(tensor.device).cuda_stream
    return CallContext(Device(int(kind), number), stream, scratch)
