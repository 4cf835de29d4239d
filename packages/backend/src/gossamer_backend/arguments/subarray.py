"""Subarrays of arrays of a device, at the first indices of an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gossamer_backend.arguments.array_view import ArrayView
from gossamer_backend.arguments.dlpack_export import exported_capsule
from gossamer_backend.arguments.view_of import view_of


def subarray(array: Any, index: Sequence[int]) -> Any:
    """Return the elements of an array of a device whose first indices are these, such as one head of several,
    as an object that exports them the way the array does. No element is copied, and the array need not
    support indexing.

    >>> import numpy as np
    >>> class Exporter:
    ...     def __dlpack_device__(self):
    ...         return 1, 0
    ...     def __dlpack__(self, **options):
    ...         return exported_capsule(view_of(np.arange(6).reshape(3, 2), name="x"))
    >>> np.from_dlpack(subarray(Exporter(), (2,))).tolist()
    [4, 5]
    """
    by_capsule = hasattr(array, "__dlpack__")
    return _ExportedSubarray(array, index) if by_capsule else _DescribedSubarray(array, index)


class _ExportedSubarray:
    """A subarray by DLPack. Each export is one of the array, which makes the stream wait for its contents."""

    def __init__(self, array: Any, index: Sequence[int]) -> None:
        self.array, self.index = array, tuple(index)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the kind and the number of the device."""
        kind, number = self.array.__dlpack_device__()
        return kind, number

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: Sequence[int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """Return a capsule of DLPack. Raises `BufferError` if it would have to be one of a copy."""
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("subarrays are exported where they are, and not copied")
        view = _view_at(view_of(self.array, name="array", stream=stream), self.index)
        return exported_capsule(view, max_version=max_version)


class _DescribedSubarray:
    """A subarray by `__cuda_array_interface__`, which names the stream of the array."""

    def __init__(self, array: Any, index: Sequence[int]) -> None:
        view = _view_at(view_of(array, name="array"), index)
        self.device, self.owner = view.device.number, array
        self.__cuda_array_interface__ = {
            **array.__cuda_array_interface__,
            "shape": view.shape,
            "strides": view.strides,
            "data": (view.address, view.is_read_only),
        }


def _view_at(view: ArrayView, index: Sequence[int]) -> ArrayView:
    count = len(index)
    offset = sum(at * step for at, step in zip(index, view.strides, strict=False))
    return view._replace(
        address=view.address + offset,
        shape=view.shape[count:],
        strides=view.strides[count:],
        owner=(view.owner, view.array),
    )
