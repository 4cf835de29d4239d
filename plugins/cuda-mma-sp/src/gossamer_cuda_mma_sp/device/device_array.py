"""Arrays in the memory of a GPU, which other packages use without a copy."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from gossamer_backend.plugin_api import HOST, ArrayView, exported_capsule, view_of
from gossamer_cuda_mma_sp.device.gpu_device import GpuDevice
from gossamer_cuda_mma_sp.device.stream_handles import stream_handle
from gossamer_cuda_mma_sp.driver.cuda_driver import DEFAULT_STREAM
from gossamer_support.arrays import Array

_UNORDERED = -1
"""The stream of a consumer that does not want to wait."""
_DEFAULT_NUMBER = 1
"""The number of the default stream, which a consumer without a stream uses."""
_NO_WAIT = (None, _DEFAULT_NUMBER, _UNORDERED)
"""Streams of consumers that need not wait."""


class _Described:
    """An array by its interface alone."""

    def __init__(self, interface: dict[str, Any], device: int, owner: object) -> None:
        self.__cuda_array_interface__ = interface
        self.device, self.owner = device, owner


class DeviceArray:
    """An array on a GPU, stored by rows. PyTorch and CuPy take it by DLPack (`torch.from_dlpack`), PyCUDA and
    Numba by `__cuda_array_interface__`."""

    def __init__(self, shape: tuple[int, ...], dtype: npt.DTypeLike, gpu: GpuDevice) -> None:
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self._gpu = gpu
        self.nbytes = prod(self.shape) * self.dtype.itemsize
        what = f"An array of shape {self.shape} and dtype {self.dtype}"
        with gpu.calling(what):
            self._block = gpu.allocate(max(self.nbytes, 1), stream=DEFAULT_STREAM, what=what)

    @property
    def device(self) -> int:
        """The number of the GPU."""
        return self._gpu.number

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The description of the array; it is for the default stream."""
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self._block.address if self.nbytes else 0, False),
            "strides": None,
            "version": 3,
        }

    def use_on(self, stream: int) -> None:
        """Note that work on a stream uses the array. Copies, other streams, and arrays that get its memory
        then wait for that."""
        self._block.use_on(stream)

    def _wait_for_others(self, stream: int = DEFAULT_STREAM) -> None:
        """Wait for work on other streams than the default one and a given one."""
        if self._block.other_streams - {stream}:
            with self._gpu.calling("Waiting for streams"):
                # All of them: a stream may be destroyed before its work is done.
                self._gpu.driver.wait(None)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the kind and the number of the device."""
        kind, number = self._gpu.device
        return kind, number

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """Return a capsule of DLPack, as the array API standard says: of the memory itself, of a copy on the
        same GPU (`copy=True`), or of a copy on the CPU (`dl_device=(1, 0)`).

        Work on another stream than the default one begins after what the default stream does now; it is
        waited for, unless the stream is -1. Raises `BufferError` for another device, for the CPU if nothing
        may be copied, and for a stream that the standard does not allow.
        """
        _require_stream(stream)
        if dl_device == HOST:
            if copy is False:
                raise BufferError(
                    f"an array on {self._gpu.device.text} is copied to the CPU, and copy is False"
                )
            view = view_of(self.to_numpy(), name="array")
            return exported_capsule(view, max_version=max_version, is_copied=True)
        if dl_device not in (None, self._gpu.device):
            raise BufferError(
                f"an array on {self._gpu.device.text} cannot be exported to the device {dl_device}; expected "
                f"its own, {tuple(self._gpu.device)}, or the CPU, {tuple(HOST)}"
            )
        exported = self._copy(stream) if copy else self
        return exported._capsule(stream, max_version, is_copied=bool(copy))

    def _copy(self, stream: int | None) -> DeviceArray:
        """Return a copy, made on the default stream. It is one of what other streams write, unless the
        consumer does not want to wait."""
        copied = DeviceArray(self.shape, self.dtype, self._gpu)
        if stream != _UNORDERED:
            self._wait_for_others()
        with self._gpu.calling("A copy on the GPU"):
            self._gpu.driver.copy_on_device(
                copied._block.address, self._block.address, self.nbytes, stream=DEFAULT_STREAM
            )
        return copied

    def _capsule(
        self, stream: int | None, max_version: tuple[int, int] | None, *, is_copied: bool
    ) -> object:
        if stream != _UNORDERED:
            self._wait_for_others(stream or DEFAULT_STREAM)
        if stream not in _NO_WAIT:
            with self._gpu.calling("An export by DLPack"):
                self._gpu.driver.wait(DEFAULT_STREAM)
        if stream not in (None, _DEFAULT_NUMBER):
            self.use_on(stream)
        described = _Described(self.__cuda_array_interface__, self._gpu.number, self)
        view = view_of(described, name="array")
        return exported_capsule(view, max_version=max_version, is_copied=is_copied)

    def copy_from(self, array: Array) -> None:
        """Copy an array of NumPy of the same shape and dtype to the GPU."""
        contiguous = np.ascontiguousarray(array, self.dtype)
        self._wait_for_others()
        with self._gpu.calling("A copy to the GPU"):
            self._gpu.driver.copy_to_device(self._block.address, contiguous, stream=DEFAULT_STREAM)

    def to_numpy(self) -> Array:
        """Wait for the streams that use the array, and return a copy of it for NumPy."""
        array = np.empty(self.shape, self.dtype)
        self._wait_for_others()
        with self._gpu.calling("A copy from the GPU"):
            self._gpu.driver.copy_to_host(array, self._block.address, stream=DEFAULT_STREAM)
        return array


def _require_stream(stream: int | None) -> None:
    """Refuse what is not a stream of a consumer; 0 could be either default stream."""
    is_number = isinstance(stream, int) and not isinstance(stream, bool)
    if stream is not None and (not is_number or stream == 0 or stream < _UNORDERED):
        raise BufferError(
            f"{stream!r} is not a stream of DLPack; expected None, -1 (no order), 1 (the default stream), "
            "2 (the default stream of the thread) or a larger handle"
        )


class GpuMemory:
    """The memory of a GPU, for the checks of arguments."""

    def __init__(self, gpu: GpuDevice) -> None:
        self._gpu, self.device = gpu, gpu.device

    def wait(self, stream: object) -> None:
        """Wait for a stream."""
        with self._gpu.calling("Waiting for a stream"):
            self._gpu.driver.wait(stream_handle(stream))

    def to_host(self, view: ArrayView) -> Array:
        """Return a copy of an array."""
        array = np.empty(view.shape, view.dtype)
        with self._gpu.calling("A copy from the GPU"):
            self._gpu.driver.copy_to_host(array, view.address, stream=DEFAULT_STREAM)
        return array
