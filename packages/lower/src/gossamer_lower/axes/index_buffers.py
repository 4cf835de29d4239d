"""Buffers of the position stage for the index arrays (indptr, and indices or words) of a function's axes."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_ir.arith.offsets import length_of
from gossamer_ir.core.axis_kinds import indices_of, indptr_of, is_varied, width_of
from gossamer_ir.core.build import ONE, add, widen
from gossamer_ir.core.lowered_names import indices_name, indptr_name, words_name
from gossamer_ir.nodes import AnyBuffer, Axis, Buffer, Expr, Load, SparseBuffer
from gossamer_ir.traversal.names import Namer
from gossamer_lower.axes.axis_tree import AxisTree
from gossamer_lower.axes.bitmask_slots import coordinate_of_slot


class IndexBuffers:
    """The `indptr`, `indices` and `words` buffers of each axis that has them.

    Elements are numbered over the whole axis; a position is relative to its fiber. An `indptr` of several
    dimensions can also be indexed by the number of the parent's element, through a second, flat buffer
    over the same array, which is declared on first use.
    """

    def __init__(self, axes: Iterable[Axis], namer: Namer) -> None:
        declared = tuple(axes)
        self.tree = AxisTree(declared, self._read_offset)
        self._namer = namer
        self._buffers: dict[tuple[str, str], SparseBuffer] = {}
        self._flat: dict[str, Buffer] = {}
        for axis in declared:
            self._declare(axis)

    def declared_buffers(self) -> tuple[AnyBuffer, ...]:
        """Return all buffers, those of the axes first."""
        return (*self._buffers.values(), *self._flat.values())

    def _declare(self, axis: Axis) -> None:
        parents = tuple(above.name for above in self.tree.chain(axis)[:-1])
        indptr, indices = indptr_of(axis), indices_of(axis)
        if indptr is not None:
            self._buffers[axis.name, "indptr"] = SparseBuffer(
                self._namer.fresh(indptr_name(axis.name)),
                parents,
                indptr.dtype,
                handle=indptr.handle,
                extra_storage=1,
            )
        if indices is not None and indices.is_mask:
            self._buffers[axis.name, "words"] = SparseBuffer(
                self._namer.fresh(words_name(axis.name)),
                parents,
                indices.dtype,
                handle=indices.handle,
            )
        elif indices is not None:
            self._buffers[axis.name, "indices"] = SparseBuffer(
                self._namer.fresh(indices_name(axis.name)),
                (*parents, axis.name),
                indices.dtype,
                handle=indices.handle,
            )

    def indices(self, axis: Axis) -> str:
        """Return the name of the buffer of the coordinates of a compressed axis."""
        return self._buffers[axis.name, "indices"].name

    # --- by positions

    def coordinate(self, axis: Axis, positions: tuple[Expr, ...]) -> Expr:
        """Return the coordinate in a slot, given by the positions along the ancestors and the axis."""
        if (axis.name, "words") in self._buffers:
            *parents, position = positions
            word = self.word(axis, tuple(parents))
            return coordinate_of_slot(word, position, length=axis.length)
        return _load(self._buffers[axis.name, "indices"], positions)

    def word(self, axis: Axis, parents: tuple[Expr, ...]) -> Expr:
        """Return the bits of a fiber of a bitmask, as an int64."""
        return _load(self._buffers[axis.name, "words"], parents)

    def extent(self, axis: Axis, parents: tuple[Expr, ...]) -> Expr:
        """Return the number of positions in a fiber."""
        if not is_varied(axis):
            return width_of(axis)
        buffer = self._buffers[axis.name, "indptr"]
        return length_of(Load(buffer.name, parents, buffer.dtype))

    # --- by elements

    def flat_indptr(self, axis: Axis) -> AnyBuffer:
        """Return the indptr of a varied axis, indexed by the number of the parent's element."""
        declared = self._buffers[axis.name, "indptr"]
        if len(declared.axes) == 1:
            return declared
        if axis.name not in self._flat:
            size = self.tree.size(self.tree.axis(declared.axes[-1]))
            name = self._namer.fresh(f"{declared.name}_flat")
            shape = (add(size, ONE),)
            self._flat[axis.name] = Buffer(name, shape, declared.dtype, declared.handle)
        return self._flat[axis.name]

    def _read_offset(self, axis: Axis, parent: Expr) -> Expr:
        return _load(self.flat_indptr(axis), (parent,))


def _load(buffer: AnyBuffer, indices: tuple[Expr, ...]) -> Expr:
    return widen(Load(buffer.name, indices, buffer.dtype))
