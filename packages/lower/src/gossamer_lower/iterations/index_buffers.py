"""The index arrays of a function's axes, as buffers of the position stage."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_ir.arith.offsets import length_of
from gossamer_ir.core import build
from gossamer_ir.nodes import (
    AnyBuffer,
    Axis,
    Buffer,
    CompressedFixed,
    CompressedVaried,
    DenseFixed,
    DenseVaried,
    Expr,
    Load,
    SparseBuffer,
)  # fmt: skip
from gossamer_ir.traversal.names import Namer

Varied = DenseVaried | CompressedVaried
Compressed = CompressedFixed | CompressedVaried


class IndexBuffers:
    """Declares an `indptr` and an `indices` buffer over the axes for each axis that has them.

    An element of an axis is numbered over the whole axis, a position is relative to its fibre. Where
    a parent's element is given by its number, an `indptr` of several dimensions is read through a
    second, flat buffer of the same array, declared when first asked for.
    """

    def __init__(self, axes: Iterable[Axis], namer: Namer) -> None:
        self._axes = {axis.name: axis for axis in axes}
        self._namer = namer
        self._buffers: dict[tuple[str, str], SparseBuffer] = {}
        self._flat: dict[str, Buffer] = {}
        for axis in self._axes.values():
            self._declare(axis)

    def declared(self) -> tuple[AnyBuffer, ...]:
        """All buffers, those of the axes first."""
        return (*self._buffers.values(), *self._flat.values())

    def axis(self, name: str) -> Axis:
        return self._axes[name]

    def chain(self, axis: Axis) -> tuple[Axis, ...]:
        """The axis with its ancestors, root first."""
        chain = [axis]
        while chain[0].parent is not None:
            chain.insert(0, self._axes[chain[0].parent])
        return tuple(chain)

    def _declare(self, axis: Axis) -> None:
        parents = tuple(found.name for found in self.chain(axis)[:-1])
        if isinstance(axis, Varied):
            self._buffers[axis.name, "indptr"] = SparseBuffer(
                self._namer.fresh(f"{axis.name}_indptr"),
                parents,
                axis.indptr_dtype,
                handle=axis.indptr,
                extra_storage=1,
            )
        if isinstance(axis, Compressed):
            self._buffers[axis.name, "indices"] = SparseBuffer(
                self._namer.fresh(f"{axis.name}_indices"),
                (*parents, axis.name),
                axis.indices_dtype,
                handle=axis.indices,
            )

    def indices(self, axis: Compressed) -> str:
        """The name of the buffer of an axis' coordinates."""
        return self._buffers[axis.name, "indices"].name

    # --- by positions

    def start(self, axis: Varied, parents: tuple[Expr, ...]) -> Expr:
        """The first element of the fibre at these positions along the ancestors."""
        return _load(self._buffers[axis.name, "indptr"], parents)

    def coordinate(self, axis: Compressed, positions: tuple[Expr, ...]) -> Expr:
        """The coordinate in a slot, given by positions along the ancestors and the axis."""
        return _load(self._buffers[axis.name, "indices"], positions)

    def extent(self, axis: Axis, parents: tuple[Expr, ...]) -> Expr:
        """How many positions a fibre has."""
        if not isinstance(axis, Varied):
            return width_of(axis)
        buffer = self._buffers[axis.name, "indptr"]
        return length_of(Load(buffer.name, parents, buffer.dtype))

    # --- by elements

    def size(self, axis: Axis) -> Expr:
        """How many elements an axis has over all fibres."""
        if isinstance(axis, Varied):
            return self.nnz(axis)
        if axis.parent is None:
            return width_of(axis)
        return build.mul(self.size(self._axes[axis.parent]), width_of(axis))

    def nnz(self, axis: Varied) -> Expr:
        """How many elements a varied axis has over all fibres: the last of its indptr."""
        if axis.nnz is not None:
            return axis.nnz
        return _load(self.flat_indptr(axis), (self.size(self._axes[axis.parent]),))

    def first(self, axis: Axis, parent: Expr) -> Expr:
        """The first element of the fibre of a parent's element."""
        if isinstance(axis, Varied):
            return _load(self.flat_indptr(axis), (parent,))
        return build.mul(parent, width_of(axis))

    def element(self, axes: tuple[Axis, ...], positions: tuple[Expr, ...]) -> Expr | None:
        """The number of the element at these positions along axes, root first; None for no axes."""
        element: Expr | None = None
        for axis, position in zip(axes, positions, strict=True):
            start = build.ZERO if element is None else self.first(axis, element)
            element = build.add(start, position)
        return element

    def flat_indptr(self, axis: Varied) -> AnyBuffer:
        """The indptr of an axis, indexed by the number of the parent's element."""
        found = self._buffers[axis.name, "indptr"]
        if len(found.axes) == 1:
            return found
        if axis.name not in self._flat:
            size = self.size(self._axes[axis.parent])
            name = self._namer.fresh(f"{found.name}_flat")
            shape = (build.add(size, build.ONE),)
            self._flat[axis.name] = Buffer(name, shape, found.dtype, found.handle)
        return self._flat[axis.name]


def width_of(axis: Axis) -> Expr:
    """How many positions each fibre of a fixed axis has."""
    assert isinstance(axis, (DenseFixed, CompressedFixed))
    return axis.width if isinstance(axis, CompressedFixed) else axis.length


def _load(buffer: AnyBuffer, indices: tuple[Expr, ...]) -> Expr:
    return build.widen(Load(buffer.name, indices, buffer.dtype))
