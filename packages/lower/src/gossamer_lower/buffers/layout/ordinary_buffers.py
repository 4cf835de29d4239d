"""The ordinary buffers that replace the sparse ones of a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gossamer_ir.core.axis_kinds import index_handles
from gossamer_ir.core.build import ONE, add, index, mul, widen
from gossamer_ir.core.lowered_names import data_name
from gossamer_ir.nodes import AnyBuffer, Buffer, Expr, Function, Load, SparseBuffer
from gossamer_ir.traversal.buffer_definitions import sparse_buffers
from gossamer_ir.traversal.names import Namer, namer_of, names_in
from gossamer_ir.traversal.rewrite import map_children
from gossamer_ir.traversal.walk import walk
from gossamer_lower.axes.index_buffers import IndexBuffers
from gossamer_lower.buffers.layout.storage_layout import StorageLayout
from gossamer_support.items_by_name import items_by_name


class OrdinaryBuffers:
    """The sparse buffers of one function, and the names and layouts of the ordinary ones for them.

    `lower` rewrites an expression; `ranges` are the ends (exclusive) of variables that start at 0.
    """

    def __init__(
        self, function: Function, *, lower: Callable[[Any], Any], ranges: dict[str, Expr]
    ) -> None:
        self._lower = lower
        self.axes = items_by_name(function.axes)
        sparse = sparse_buffers(function.buffers)
        self.sparse = items_by_name(sparse)
        self._by_handle = {buffer.handle: buffer for buffer in sparse if buffer.handle is not None}
        self.names = self._ordinary_names(function)
        self.storage = StorageLayout(self.axes, self._read_offset, ranges=ranges)
        self.offsets: dict[str, Buffer] = {}
        self._added: list[SparseBuffer] = []
        self.namer = Namer((*names_in(function), *self.names.values()))
        self._add_offsets(self.namer, sparse)
        self.flat = {
            buffer.name: self.names[indptr.name]
            for buffer in function.buffers
            if (indptr := self._indptr_of(buffer)) is not None
        }

    def _ordinary_names(self, function: Function) -> dict[str, str]:
        """Return the new name of each buffer: index buffers keep theirs, buffers of values get `_data`."""
        kept = {handle for axis in function.axes for handle in index_handles(axis)}
        namer = namer_of(function)
        return {
            buffer.name: buffer.name
            if buffer.handle in kept
            else namer.fresh(data_name(buffer.name))
            for buffer in self.sparse.values()
        }

    def _add_offsets(self, namer: Namer, buffers: Iterable[SparseBuffer]) -> None:
        for buffer in buffers:
            handle = buffer.offsets
            if handle is not None and handle not in (*self._by_handle, *self.offsets):
                offsets = self.storage.offsets(buffer, namer.fresh(f"{buffer.name}_offsets"))
                if offsets is not None:
                    self.offsets[handle] = offsets

    def _indptr_of(self, buffer: AnyBuffer) -> SparseBuffer | None:
        """Return the indptr of an axis over the same array as an ordinary buffer; None if there is none."""
        if not isinstance(buffer, Buffer) or buffer.handle is None or len(buffer.shape) != 1:
            return None
        declared = self._by_handle.get(buffer.handle)
        return declared if declared is not None and declared.extra_storage else None

    def _is_flat(self, buffer: AnyBuffer) -> bool:
        """Return whether a buffer is over the same array as an index buffer, which replaces it."""
        return buffer.name in self.flat

    def ordinary(self, buffer: AnyBuffer) -> Buffer:
        """Return the ordinary buffer with the same elements."""
        if isinstance(buffer, Buffer):
            return map_children(buffer, self._lower)
        storage = self.storage
        shape = tuple(storage.extent(dimension) for dimension in storage.dimensions(buffer))
        if buffer.extra_storage:
            size = shape[0] if shape else ONE
            for extent in shape[1:]:
                size = mul(size, extent)
            shape = (add(size, index(buffer.extra_storage)),)
        return Buffer(self.names[buffer.name], shape, buffer.dtype, buffer.handle, buffer.scope)

    def buffers(self, function: Function) -> tuple[Buffer, ...]:
        """Return the ordinary buffers, also for index arrays for which the function declares no buffer: the
        caller passes these arrays, and facts about them are checked."""
        for axis in function.axes:
            for handle in index_handles(axis):
                if handle not in self._by_handle:
                    self._declare(handle)
        bound = [self.ordinary(buffer) for buffer in function.buffers if not self._is_flat(buffer)]
        added: list[Buffer] = []
        # Not a `for`: the size of an added buffer may add another one.
        while len(added) < len(self._added):
            added.append(self.ordinary(self._added[len(added)]))
        return _sort_by_declaration([*bound, *added, *self.offsets.values()])

    def _declare(self, handle: str) -> SparseBuffer:
        """Declare a buffer for an index array of an axis for which the function has none."""
        declared = IndexBuffers(self.axes.values(), self.namer).declared_buffers()
        buffer = next(other for other in declared if other.handle == handle)
        assert isinstance(buffer, SparseBuffer)
        self.sparse[buffer.name] = self._by_handle[handle] = buffer
        self.names[buffer.name] = buffer.name
        self._added.append(buffer)
        return buffer

    def _read_offset(self, handle: str, position: Expr) -> Expr:
        """Return an element of an indptr, or of the offsets of a buffer."""
        buffer = self._by_handle.get(handle)
        if buffer is None and handle not in self.offsets:
            buffer = self._declare(handle)
        if buffer is None:
            offsets = self.offsets[handle]
            return widen(Load(offsets.name, (position,), offsets.dtype))
        return widen(Load(self.names[buffer.name], (position,), buffer.dtype))

    def index_name(self, handle: str) -> str | None:
        """Return the name of the index buffer with a handle, None if there is none."""
        buffer = self._by_handle.get(handle)
        return None if buffer is None else self.names[buffer.name]

    def size(self, handle: str) -> Expr:
        """Return the number of elements of the index array with a handle."""
        (extent,) = self.ordinary(self._by_handle[handle]).shape
        return extent


def _sort_by_declaration(buffers: Iterable[Buffer]) -> tuple[Buffer, ...]:
    """Return the buffers in their order, except that each comes after those from which its size is read."""
    buffers = tuple(buffers)
    names = items_by_name(buffers)
    result: dict[str, Buffer] = {}

    def declare(buffer: Buffer) -> None:
        for size in buffer.shape:
            for node in walk(size):
                if isinstance(node, Load) and node.buffer not in result:
                    declare(names[node.buffer])
        result.setdefault(buffer.name, buffer)

    for buffer in buffers:
        declare(buffer)
    return tuple(result.values())
