"""Buffers that threads share: races, and reads of elements that no thread wrote, are errors."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, TypeAlias

import msgspec
import numpy as np
from msgspec.structs import replace

from gossamer_ir.interpret.interpreter_errors import InterpreterError
from gossamer_ir.interpret.memory.views import View, ViewIndices
from gossamer_ir.interpret.threads.grid import Moment, ThreadGrid, ThreadPath, concurrent_iterations
from gossamer_ir.nodes import Buffer
from gossamer_support.arrays import Array

ArrayIndex: TypeAlias = tuple[int, ...]


class WatchedView(View):
    """A view of memory that the threads of a grid share, with the last accesses to each element. Each block
    has a copy of a buffer in shared memory, whose elements must be written before they are read."""

    __slots__ = ("_grid", "_in_flight", "_is_shared", "_reads", "_writes")

    def __init__(self, buffer: Buffer, array: Array, grid: ThreadGrid) -> None:
        super().__init__(buffer.name, array, dtype=buffer.dtype)
        self._grid, self._is_shared = grid, buffer.scope == "shared"
        self._writes: dict[ArrayIndex, Moment] = {}
        self._reads: dict[ArrayIndex, dict[ThreadPath, Moment]] = {}
        self._in_flight: set[ArrayIndex] = set()

    def read(self, indices: ViewIndices) -> Any:
        """Return the element at indices."""
        self._note_read(self._checked_indices(indices))
        return super().read(indices)

    def write(self, indices: ViewIndices, value: Any) -> None:
        """Set the element at indices."""
        self._note_write(self._checked_indices(indices))
        super().write(indices, value)

    def gather(self, indices: ViewIndices, mask: Array | None, passthrough: Any) -> Any:
        """Return the elements at vector indices."""
        result = super().gather(indices, mask, passthrough)
        for where in _elements(indices, mask):
            self._note_read(where)
        return result

    def scatter(self, indices: ViewIndices, value: Any, mask: Array | None) -> None:
        """Set the elements at vector indices."""
        super().scatter(indices, value, mask)
        for where in _elements(indices, mask):
            self._note_write(where)

    def window(self, prefix: ViewIndices, begin: int, end: int) -> Array:
        """Return the elements of a range."""
        for last in range(begin, end):
            self._note_read(self._checked_indices((*prefix, last)))
        return super().window(prefix, begin, end)

    def _note_read(self, where: ArrayIndex) -> None:
        now, written = self._grid.moment(), self._writes.get(where)
        self._require_complete(where, now)
        if written is not None:
            self._require_order(where, written, now)
        elif self._is_shared:
            raise InterpreterError(
                f"{_text_of(now)} reads {self._element(where)}, which no thread has written.",
                buffer_name=self.name,
            )
        if now.path:
            self._reads.setdefault(where, {})[now.path] = now

    def _note_write(self, where: ArrayIndex) -> None:
        now = self._grid.moment()
        self._require_complete(where, now)
        earlier = [self._writes[where]] if where in self._writes else []
        for moment in (*earlier, *self._reads.pop(where, {}).values()):
            self._require_order(where, moment, now)
        self._writes[where] = now
        if self._grid.is_copying and self._is_shared:
            self._in_flight.add(where)
            self._grid.copies.begin(self._grid.thread, CopiedElement(self, where))

    def take_place_of(self, other: WatchedView) -> None:
        """Let the accesses to another view precede those to this one, whose elements are not written yet."""
        self._reads = other._reads
        for where, moment in other._writes.items():
            self._reads.setdefault(where, {}).setdefault(moment.path, moment)

    def complete(self, where: ArrayIndex) -> None:
        """End the asynchronous copy of an element: it is as if it were stored now."""
        self._in_flight.discard(where)
        self._writes[where] = replace(self._writes[where], barriers=self._grid.barriers)

    def _require_complete(self, where: ArrayIndex, now: Moment) -> None:
        if where in self._in_flight:
            raise InterpreterError(
                f"{_text_of(now)} accesses {self._element(where)}, which an asynchronous copy writes: the "
                "thread that began it has not waited for it.",
                buffer_name=self.name,
            )

    def _require_order(self, where: ArrayIndex, earlier: Moment, now: Moment) -> None:
        pair = concurrent_iterations(
            earlier, now, in_block=self._is_shared, in_kernel=self._grid.is_kernel
        )
        if pair is None or _are_combined(earlier, now, self.name, is_in_block=not pair[0].is_block):
            return
        first, second = pair
        raise InterpreterError(
            f"A race: {_text_of(earlier)} at {first.text} and {_text_of(now)} at {second.text} access "
            f"{self._element(where)} without a barrier between them.",
            buffer_name=self.name,
        )

    def _element(self, where: ArrayIndex) -> str:
        return f"{self.name}[{', '.join(map(str, where))}]"


class CopiedElement(msgspec.Struct, frozen=True):
    """An element that an asynchronous copy writes."""

    view: WatchedView
    where: ArrayIndex


def buffer_view(
    buffer: Buffer, array: Array, *, grid: ThreadGrid | None, earlier: View | None = None
) -> View:
    """Return the view of an array of a buffer, with checks of what the threads of a grid access, if there is
    one. In a kernel, shared memory is that of the `earlier` view, if its allocation runs again."""
    if grid is None:
        return View(buffer.name, array, dtype=buffer.dtype)
    view = WatchedView(buffer, array, grid)
    if grid.is_kernel and buffer.scope == "shared" and isinstance(earlier, WatchedView):
        view.take_place_of(earlier)
    return view


def _text_of(moment: Moment) -> str:
    return "a statement" if moment.stmt is None else moment.stmt.text


def _are_combined(one: Moment, other: Moment, buffer_name: str, *, is_in_block: bool) -> bool:
    """Return whether two accesses are parts of accumulations by one operation, whose order does not matter:
    atomic ones, or sums over the threads of a block."""
    if one.stmt is None or other.stmt is None:
        return False
    if {one.stmt.accumulated, other.stmt.accumulated} != {buffer_name}:
        return False
    is_atomic = one.stmt.is_atomic and other.stmt.is_atomic
    return one.stmt.op == other.stmt.op and (is_atomic or is_in_block)


def _elements(indices: ViewIndices, mask: Array | None) -> Iterator[ArrayIndex]:
    """Yield the elements that the lanes of vector indices address."""
    wide = np.broadcast_arrays(*indices)
    for lane in product(*map(range, wide[0].shape)):
        if mask is None or mask[lane]:
            yield tuple([int(index[lane]) for index in wide])
