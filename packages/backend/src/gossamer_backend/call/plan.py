"""Calls with mostly fixed arguments: only some arrays are passed each time.

The arrays that are passed are checked by a cheap test that accepts ordinary arrays. All others are checked by
`Kernel.bind`, which accepts them or raises the error.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from gossamer_backend.arguments.arrays import address, numpy_dtype
from gossamer_backend.arguments.match import Value
from gossamer_backend.arguments.sizes import Array
from gossamer_backend.call.abi import NOT_GUARDED, ParallelismSource, Workspace
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Signature

_POINTER = ctypes.c_void_p
_BYREF = ctypes.byref


class PlannedKernel(NamedTuple):
    """The parts of a kernel that a plan uses: `function` is the machine code, `fail` raises the error for a
    status, `bind` checks all arguments and returns a call with them."""

    signature: Signature
    function: Callable[..., int]
    parallelism: ParallelismSource
    fail: Callable[[int, int], NoReturn]
    bind: Callable[..., Callable[[], None]]


class _Slot(NamedTuple):
    """An array that is passed at each call: the position of its address, and its required properties."""

    position: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_written: bool


class CallPlan:
    """`plan(*arrays)` runs a kernel with these arrays for the changing parameters, in order.

    It holds references to the fixed arrays. It keeps no state between calls, so several threads may call it
    at once with different arrays.
    """

    __slots__ = (
        "_arguments",
        "_bind",
        "_call",
        "_changing",
        "_fail",
        "_fixed",
        "_hull",
        "_parallelism",
        "_ranges",
        "_slots",
        "_verified",
    )  # fmt: skip

    def __init__(
        self,
        kernel: PlannedKernel,
        changing: tuple[str, ...],
        *,
        values: Mapping[str, Value],
        arguments: Sequence[object],
        verified: Collection[str],
    ) -> None:
        """`values` are by parameter; `arguments` are the same values as ctypes objects."""
        self._bind, self._call, self._fail = kernel.bind, kernel.function, kernel.fail
        self._parallelism = kernel.parallelism
        self._changing = changing
        self._verified = tuple(verified)
        self._fixed = {name: values[name] for name in values if name not in changing}
        self._arguments = list(arguments)
        self._slots = tuple(_slot(kernel.signature, name, values) for name in changing)
        self._ranges = tuple(
            _range(value) for value in self._fixed.values() if isinstance(value, np.ndarray)
        )
        starts, ends = zip(*self._ranges, strict=True) if self._ranges else ((0,), (0,))
        self._hull = min(starts), max(ends)

    def __call__(self, *arrays: Array) -> None:
        """Run the kernel; errors as those of `Kernel.bind` and of `BoundCall`."""
        if not self.run_usual(*arrays):
            passed: Mapping[str, Value] = dict(zip(self._changing, arrays, strict=True))
            self._bind(verified=self._verified, **self._fixed, **passed)()

    def run_usual(self, *arrays: Array) -> bool:
        """Run the kernel and return True if the arrays have the expected shapes, are contiguous and do not
        overlap; else return False without running it."""
        arguments = self._arguments.copy()
        ranges = []
        for array, (position, dtype, shape, is_written) in zip(arrays, self._slots, strict=True):
            if type(array) is not np.ndarray or array.shape != shape or array.dtype != dtype:
                return False
            flags = array.flags
            if not (flags.carray or (flags.c_contiguous and flags.aligned and not is_written)):
                return False
            start = address(array)
            arguments[position] = _POINTER(start)
            ranges.append((start, start + array.nbytes, is_written))
        if self._may_overlap(ranges):
            return False
        workspace = Workspace(*self._parallelism(), NOT_GUARDED)
        status = self._call(*arguments, _BYREF(workspace))
        if status:
            self._fail(status, workspace.failed_buffer)
        return True

    def _may_overlap(self, ranges: list[tuple[int, int, bool]]) -> bool:
        """Return whether an array that is written may share memory with another one."""
        low, high = self._hull
        for at, (start, end, is_written) in enumerate(ranges):
            if not is_written:
                continue
            if start < high and low < end and self._meets_fixed(start, end):
                return True
            for other, (other_start, other_end, _) in enumerate(ranges):
                if other != at and start < other_end and other_start < end:
                    return True
        return False

    def _meets_fixed(self, low: int, high: int) -> bool:
        return any(low < end and start < high for start, end in self._ranges)


def _slot(signature: Signature, name: str, values: Mapping[str, Value]) -> _Slot:
    for param in signature.buffers:
        if param.name == name:
            if param.facts:
                raise ArgumentError(
                    "kernel.prepare",
                    f"The parameter '{name}' holds indices, whose contents would be checked at each "
                    "call.",
                    hint="Let it stay, or use bind.",
                )
            array = values[name]
            assert isinstance(array, np.ndarray)
            position = signature.order.index(name)
            return _Slot(position, numpy_dtype(param), array.shape, param.is_written)
    raise ArgumentError(
        "kernel.prepare",
        f"'{name}' is not an array parameter of the kernel.",
        hint=f"Its parameters are {', '.join(signature.order)}.",
    )


def _range(array: Array) -> tuple[int, int]:
    start = address(array)
    return start, start + array.nbytes
