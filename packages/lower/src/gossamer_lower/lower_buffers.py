"""Position stage to loop stage: sparse buffers become ordinary ones.

Varied dimensions are flattened into their parents, fixed ones stay dimensions of their own:
`A[vi, vj]` over (I, J) of CSR becomes `A_data[J_indptr[vi] + vj]`, a BSR buffer `[nnzb, b, b]`. What
is known of the axes becomes facts about their index buffers.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gossamer_ir import build
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.names import Namer
from gossamer_ir.nodes import (
    AnyBuffer,
    Axis,
    Binary,
    Buffer,
    Compare,
    CompressedFixed,
    CompressedVaried,
    DenseFixed,
    DenseVaried,
    Expr,
    Fact,
    Function,
    InRange,
    Load,
    Module,
    Monotone,
    PaddedSlots,
    Prefetch,
    Range,
    Region,
    Search,
    Select,
    SortedSegments,
    SparseBuffer,
    Store,
)  # fmt: skip
from gossamer_ir.walk import map_children
from gossamer_lower.index_buffers import require_nnz, width_of
from gossamer_lower.stages import map_functions, names_of


def lower_buffers(module: Module) -> Module:
    """Flattens the sparse buffers of a position-stage module; the result is at the loop stage.

    Raises `UnsupportedError` (`lower.storage`, `lower.nnz`) for storage that is not lowered yet.

    >>> from gossamer_lower import lower_iterations
    >>> from gossamer_lower.examples import ROW_SUMS, body_text
    >>> before = lower_iterations(ROW_SUMS)
    >>> print(body_text(before))
    for i in T.serial(m):
        for j in T.serial(J_indptr[i + 1] - J_indptr[i]):
            with T.block("sums"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y[vi] = 0.0
                Y[vi] = Y[vi] + A[vi, vj]
    >>> print(body_text(lower_buffers(before)))
    for i in T.serial(m):
        for j in T.serial(J_indptr[i + 1] - J_indptr[i]):
            with T.block("sums"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y_data[vi] = 0.0
                Y_data[vi] = Y_data[vi] + A_data[J_indptr[vi] + vj]
    """
    return map_functions(module, "position", "loop", _lower_function)


class _Dimension(msgspec.Struct, frozen=True):
    """One dimension of the ordinary buffer: its extent, and the axes that it enumerates."""

    axes: tuple[str, ...]
    extent: Expr


def _lower_function(function: Function) -> Function:
    lowering = _Lowering(function)
    return msgspec.structs.replace(
        function,
        axes=(),
        relations=(),
        buffers=tuple(
            lowering.ordinary(buffer) for buffer in function.buffers if not lowering.is_flat(buffer)
        ),
        body=tuple(lowering.node(stmt) for stmt in function.body),
        facts=(*function.facts, *lowering.facts()),
    )


class _Lowering:
    """The tables of one function."""

    def __init__(self, function: Function) -> None:
        self._axes = {axis.name: axis for axis in function.axes}
        self._relations = function.relations
        sparse = [found for found in function.buffers if isinstance(found, SparseBuffer)]
        self._sparse = {buffer.name: buffer for buffer in sparse}
        self._by_handle = {buffer.handle: buffer for buffer in sparse if buffer.handle is not None}
        self._names = self._ordinary_names(function)
        self._flat = {
            buffer.name: self._names[found.name]
            for buffer in function.buffers
            if (found := self._indptr_of(buffer)) is not None
        }

    def _indptr_of(self, buffer: AnyBuffer) -> SparseBuffer | None:
        """The indptr of an axis that an ordinary buffer is another name for."""
        if not isinstance(buffer, Buffer) or len(buffer.shape) != 1:
            return None
        found = self._by_handle.get(buffer.handle or "")
        return found if found is not None and found.extra_storage else None

    def is_flat(self, buffer: AnyBuffer) -> bool:
        """Whether a buffer is another name for an index buffer, which replaces it."""
        return buffer.name in self._flat

    def _ordinary_names(self, function: Function) -> dict[str, str]:
        """Index buffers keep their name, buffers of values get `_data`."""
        index_handles = {getattr(axis, "indptr", None) for axis in function.axes}
        index_handles |= {getattr(axis, "indices", None) for axis in function.axes}
        namer = Namer(names_of(function))
        return {
            buffer.name: buffer.name
            if buffer.handle is not None and buffer.handle in index_handles
            else namer.fresh(f"{buffer.name}_data")
            for buffer in self._sparse.values()
        }

    # --- storage

    def ordinary(self, buffer: AnyBuffer) -> Buffer:
        """The ordinary buffer with the same elements."""
        if isinstance(buffer, Buffer):
            return buffer
        shape = tuple(dimension.extent for dimension in self._dimensions(buffer))
        if buffer.extra_storage:
            size = shape[0] if shape else build.ONE
            for extent in shape[1:]:
                size = build.mul(size, extent)
            shape = (build.add(size, build.index(buffer.extra_storage)),)
        return Buffer(self._names[buffer.name], shape, buffer.dtype, buffer.handle, buffer.scope)

    def _dimensions(self, buffer: SparseBuffer) -> list[_Dimension]:
        dimensions: list[_Dimension] = []
        for name in buffer.axes:
            axis = self._axes[name]
            if isinstance(axis, (DenseVaried, CompressedVaried)):
                inner = self._inner_dimensions(axis, dimensions, buffer)
                flat = tuple(found for dimension in inner for found in dimension.axes)
                del dimensions[len(dimensions) - len(inner) :]
                dimensions.append(_Dimension((*flat, name), require_nnz(axis)))
            else:
                extent = axis.width if isinstance(axis, CompressedFixed) else axis.length
                dimensions.append(_Dimension((name,), extent))
        return dimensions

    def _inner_dimensions(
        self,
        axis: DenseVaried | CompressedVaried,
        dimensions: list[_Dimension],
        buffer: SparseBuffer,
    ) -> list[_Dimension]:
        """The last dimensions, which must be exactly those of the ancestors of a varied axis."""
        ancestors = self._ancestors(axis)
        for count in range(1, len(dimensions) + 1):
            inner = dimensions[-count:]
            names = [name for dimension in inner for name in dimension.axes]
            if names == ancestors:
                return inner
        raise UnsupportedError(
            "lower.storage",
            f"The buffer {buffer.name} stores {axis.name} apart from its parents "
            f"{', '.join(ancestors)}, which is not lowered yet.",
            hint="List the parents just before the varied axis.",
        )

    def _ancestors(self, axis: Axis) -> list[str]:
        names: list[str] = []
        parent = axis.parent
        while parent is not None:
            names.insert(0, parent)
            parent = self._axes[parent].parent
        return names

    # --- accesses

    def node(self, node: Any) -> Any:
        """A statement or expression with its accesses rewritten."""
        if isinstance(node, Region) and node.buffer in self._sparse:
            return self._region(node)
        lowered = map_children(node, self.node)
        if isinstance(lowered, (Load, Search)) and lowered.buffer in self._flat:
            return msgspec.structs.replace(lowered, buffer=self._flat[lowered.buffer])
        if isinstance(lowered, Search) and lowered.buffer in self._sparse:
            return self._search(lowered)
        if isinstance(lowered, (Load, Store, Prefetch)) and lowered.buffer in self._sparse:
            buffer = self._sparse[lowered.buffer]
            indices = self._indices(buffer, lowered.indices)
            return msgspec.structs.replace(
                lowered, buffer=self._names[lowered.buffer], indices=indices
            )
        return lowered

    def _region(self, region: Region) -> Region:
        """Declared regions of sparse buffers widen to the whole buffer."""
        ordinary = self.ordinary(self._sparse[region.buffer])
        ranges = tuple(Range(build.ZERO, extent) for extent in ordinary.shape)
        return Region(ordinary.name, ranges)

    def _search(self, node: Search) -> Expr:
        """A search in one fibre as one in the whole array, its result relative to the fibre."""
        buffer = self._sparse[node.buffer]
        *prefix, start = self._indices(buffer, (*node.prefix, build.ZERO))
        found = msgspec.structs.replace(
            node,
            buffer=self._names[node.buffer],
            prefix=tuple(prefix),
            begin=build.add(start, node.begin),
            end=build.add(start, node.end),
        )
        if start == build.ZERO:
            return found
        position = build.sub(found, start)
        if node.kind != "exact":
            return position
        return Select(Compare("lt", found, build.ZERO), found, position)

    def _indices(self, buffer: SparseBuffer, positions: tuple[Expr, ...]) -> tuple[Expr, ...]:
        by_axis = dict(zip(buffer.axes, positions, strict=True))
        dimensions = self._dimensions(buffer)
        if not buffer.extra_storage:
            return tuple(self._offset(found.axes, by_axis) for found in dimensions)
        offset: Expr = build.ZERO
        for dimension in dimensions:
            part = self._offset(dimension.axes, by_axis)
            offset = _element(build.mul(offset, dimension.extent), part)
        return (offset,)

    def _offset(self, axes: tuple[str, ...], positions: dict[str, Expr]) -> Expr:
        """The offset of an element in the enumeration of an axis and its ancestors."""
        *ancestors, last = axes
        axis, position = self._axes[last], positions[last]
        if not ancestors:
            return position
        parent = self._offset(tuple(ancestors), positions)
        if isinstance(axis, (DenseFixed, CompressedFixed)):
            return _element(build.mul(parent, width_of(axis)), position)
        index_buffer = self._by_handle[axis.indptr]
        start = Load(self._names[index_buffer.name], (parent,), index_buffer.dtype)
        return _element(build.widen(start), position)

    # --- facts

    def facts(self) -> list[Fact]:
        """What the axes promise, as facts about their index buffers."""
        found: list[Fact] = []
        for axis in self._axes.values():
            found += self._facts_of(axis)
        return [*found, *self._relation_facts()]

    def _facts_of(self, axis: Axis) -> list[Fact]:
        facts: list[Fact] = []
        indptr = self._index_name(getattr(axis, "indptr", None))
        if indptr is not None and isinstance(axis, (DenseVaried, CompressedVaried)):
            facts += [
                InRange(indptr, build.ZERO, build.add(require_nnz(axis), build.ONE)),
                Monotone(indptr),
            ]
        indices = self._index_name(getattr(axis, "indices", None))
        if indices is not None and isinstance(axis, (CompressedFixed, CompressedVaried)):
            high = build.add(axis.length, build.ONE) if axis.padded else axis.length
            facts.append(InRange(indices, build.ZERO, high))
            facts += [SortedSegments(indices, indptr, axis.unique)] if axis.sorted else []
            facts += [PaddedSlots(indices, axis.length)] if axis.padded else []
        return facts

    def _index_name(self, handle: str | None) -> str | None:
        buffer = self._by_handle.get(handle) if handle is not None else None
        return None if buffer is None else self._names[buffer.name]

    def _relation_facts(self) -> list[Fact]:
        """Relations between axes as relations between their index buffers."""
        facts: list[Fact] = []
        for relation in self._relations:
            sides = [
                getattr(self._axes[name], "indices", None)
                for name in (relation.left, relation.right)
            ]
            left, right = (self._index_name(side) for side in sides)
            if left is not None and right is not None:
                facts.append(msgspec.structs.replace(relation, left=left, right=right))
        return facts


def _element(start: Expr, position: Expr) -> Expr:
    """start + position, which is the element again where the position was computed from it."""
    match start, position:
        case _, Binary(op="sub", lhs=element, rhs=first) if first == start:
            return element
        case (
            Binary(op="mul", lhs=Binary(op="floordiv") as fibre, rhs=width),
            Binary(op="floormod", lhs=element, rhs=divisor),
        ) if divisor == width and fibre == Binary("floordiv", element, width):
            return element
    return build.add(start, position)
