"""Coordinate stage to position stage: each iteration becomes loops around one block.

An access by coordinates becomes one by positions: an index that is the iterator of the buffer's own
axis (with the parent's iterator before it) stays a position; any other index is translated to its
coordinate, which is a position in a dense axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

import msgspec

from gossamer_ir import build
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.names import Namer
from gossamer_ir.nodes import (
    STATEMENTS,
    AttachAxis,
    Axis,
    Block,
    BlockIter,
    Compare,
    CompressedFixed,
    CompressedVaried,
    DenseFixed,
    DenseVaried,
    Expr,
    For,
    Function,
    FuseAxes,
    Iteration,
    Load,
    Module,
    OverAxis,
    Range,
    SparseBuffer,
    Stmt,
    Store,
    Var,
)  # fmt: skip
from gossamer_ir.walk import free_vars, map_children
from gossamer_lower.fused import (
    Fused,
    init_visits_others,
    items_of,
    where_searchable,
    with_init_apart,
)
from gossamer_lower.index_buffers import Compressed, IndexBuffers
from gossamer_lower.stages import map_functions, names_of


def lower_iterations(module: Module) -> Module:
    """Lowers every iteration of a coordinate-stage module; the result is at the position stage.

    Raises `UnsupportedError` (`lower.attach`, `lower.search`) for what is in the
    language and not lowered yet.

    >>> from gossamer_lower.examples import ROW_SUMS, body_text
    >>> print(body_text(ROW_SUMS))
    with T.sp.iteration([I, J], "SR", "sums") as [i, j]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + A[i, j]
    >>> print(body_text(lower_iterations(ROW_SUMS)))
    for i in T.serial(m):
        for j in T.serial(J_indptr[i + 1] - J_indptr[i]):
            with T.block("sums"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y[vi] = 0.0
                Y[vi] = Y[vi] + A[vi, vj]
    """
    return map_functions(module, "coordinate", "position", _lower_function)


class _Iterator(msgspec.Struct, frozen=True):
    """An iterated axis: the position along it, from the variable of its loop."""

    axis: Axis
    position: Expr


_Access = TypeVar("_Access", Load, Store)
_Scope = Mapping[str, _Iterator]
"""Iterators in force, by the name of the iteration's variable."""


class _Nest(msgspec.Struct):
    """What an iteration becomes: loops, block iterators, and what the iteration's variables are in
    the headers of loops and in the block."""

    in_loops: dict[str, _Iterator]
    in_block: dict[str, _Iterator]
    loops: list[tuple[str, Expr]] = []
    iters: list[BlockIter] = []
    fused: set[str] = set()
    predicate: Expr | None = None


def _lower_function(function: Function) -> Function:
    lowering = _Lowering(function)
    body = lowering.statements(function.body, {})
    buffers = (*function.buffers, *lowering.index_buffers.declared())
    return msgspec.structs.replace(function, body=body, buffers=buffers)


class _Lowering:
    """The tables of one function."""

    def __init__(self, function: Function) -> None:
        self._buffers = {
            buffer.name: buffer for buffer in function.buffers if isinstance(buffer, SparseBuffer)
        }
        self._namer = Namer(names_of(function))
        self.index_buffers = IndexBuffers(function.axes, self._namer)

    # --- statements

    def statements(self, body: tuple[Stmt, ...], scope: _Scope) -> tuple[Stmt, ...]:
        """Lowers statements under the iterators of outer iterations."""
        return tuple(found for stmt in body for found in self._statement(stmt, scope))

    def _statement(self, stmt: Stmt, scope: _Scope) -> tuple[Stmt, ...]:
        if isinstance(stmt, Iteration):
            return self._iteration(stmt, scope)
        lowered: Stmt = map_children(stmt, lambda child: self._below(child, scope))
        if isinstance(lowered, Store) and isinstance(stmt, Store):
            return (self._translated(lowered, stmt, scope),)
        return (lowered,)

    def _below(self, child: Any, scope: _Scope) -> Any:
        """What stands in a statement: further statements or expressions."""
        if isinstance(child, STATEMENTS):
            return self._statement(child, scope)
        return self._value(child, scope)

    def _iteration(self, node: Iteration, scope: _Scope) -> tuple[Stmt, ...]:
        if node.init and init_visits_others(node, self.index_buffers):
            parts = with_init_apart(node, self.index_buffers, self._namer)
            return tuple(stmt for part in parts for stmt in self._iteration(part, scope))
        nest = _Nest(dict(scope), dict(scope))
        for item, kinds, names in items_of(node):
            if isinstance(item, FuseAxes):
                self._add_fused(nest, item, kinds=kinds, names=names)
            else:
                self._add(nest, self._iterated(item), kind=kinds, name=names[0])
        init = self.statements(node.init, nest.in_block)
        block = Block(
            node.name,
            tuple(self._with_kind(found, init, nest=nest) for found in nest.iters),
            self.statements(node.body, nest.in_block),
            init=init,
            predicate=nest.predicate,
            annotations=node.annotations,
        )
        return (where_searchable(_nested(nest.loops, block)),)

    def _add(self, nest: _Nest, axis: Axis, *, kind: str, name: str) -> None:
        var = self._namer.fresh(f"v{name}")
        loop_parents = self._parents(axis, nest.in_loops)
        block_parents = self._parents(axis, nest.in_block)
        nest.loops.append((name, self.index_buffers.extent(axis, loop_parents)))
        domain = Range(build.ZERO, self.index_buffers.extent(axis, block_parents))
        nest.iters.append(BlockIter(var, _kind_of(kind), domain, build.index_var(name)))
        nest.in_loops[name] = _Iterator(axis, build.index_var(name))
        nest.in_block[name] = _Iterator(axis, build.index_var(var))
        self._skip_padding(nest, axis)

    def _add_fused(
        self, nest: _Nest, item: FuseAxes, *, kinds: str, names: tuple[str, ...]
    ) -> None:
        axes = tuple(self.index_buffers.axis(name) for name in item.axes)
        loop = self._namer.fresh("_".join(names))
        var = self._namer.fresh(f"v{loop}")
        around = Fused(axes, self.index_buffers, self._element_above(axes[0], nest.in_loops))
        inside = Fused(axes, self.index_buffers, self._element_above(axes[0], nest.in_block))
        nest.loops.append((loop, around.extent()))
        kind = _kind_of("S" if set(kinds) == {"S"} else "R")
        domain = Range(build.ZERO, inside.extent())
        nest.iters.append(BlockIter(var, kind, domain, build.index_var(loop)))
        nest.fused.add(var)
        for scope, fused, count in ((nest.in_loops, around, loop), (nest.in_block, inside, var)):
            found = fused.positions(build.index_var(count))
            scope.update(
                (name, _Iterator(axis, position))
                for name, axis, position in zip(names, axes, found, strict=True)
            )
        for axis in axes:
            self._skip_padding(nest, axis)

    def _element_above(self, axis: Axis, scope: _Scope) -> Expr | None:
        """The number of the element of the parent; None for a root."""
        element: Expr | None = None
        for above in self.index_buffers.chain(axis)[:-1]:
            position = self._position(above, scope)
            element = (
                position
                if element is None
                else build.add(self.index_buffers.first(above, element), position)
            )
        return element

    def _skip_padding(self, nest: _Nest, axis: Axis) -> None:
        """An iterated slot of a padded axis must be an element."""
        if isinstance(axis, (CompressedFixed, CompressedVaried)) and axis.padded:
            slot = self._coordinate_of(axis, nest.in_block)
            nest.predicate = build.conjunction(nest.predicate, Compare("ne", slot, axis.length))

    def _iterated(self, item: OverAxis | AttachAxis) -> Axis:
        if isinstance(item, OverAxis):
            return self.index_buffers.axis(item.axis)
        raise UnsupportedError(
            "lower.attach", "An iteration over attach(...) is not lowered yet.",
            hint="Iterate the axes one by one.",
        )  # fmt: skip

    def _with_kind(self, found: BlockIter, init: tuple[Stmt, ...], *, nest: _Nest) -> BlockIter:
        """An iterator under which several points meet in one initialised element is a reduction.

        It is none where the element's position along some dimension is the iterator itself, or
        where the element's positions along fused axes are all those of the fused iterator.
        """
        is_element = all(
            self._is_selected(stmt, found.var, nest=nest)
            for stmt in init
            if isinstance(stmt, Store)
        )
        return found if is_element else msgspec.structs.replace(found, kind="R")

    def _is_selected(self, store: Store, var: str, *, nest: _Nest) -> bool:
        if var not in nest.fused:
            return self._is_named(store, build.index_var(var), nest=nest)
        buffer = self._buffers.get(store.buffer)
        by_axis = {} if buffer is None else dict(zip(buffer.axes, store.indices, strict=True))
        return all(
            by_axis.get(iterator.axis.name) == iterator.position
            for iterator in nest.in_block.values()
            if var in free_vars(iterator.position)
        )

    def _is_named(self, store: Store, position: Expr, *, nest: _Nest) -> bool:
        """Whether the element's place along some dimension is a position of an iterator, or its
        coordinate in the only fibre of an axis that holds each once."""
        (axis,) = (found.axis for found in nest.in_block.values() if found.position == position)
        if position in store.indices or _is_unit(axis):
            return True
        if not isinstance(axis, CompressedVaried) or not (axis.sorted and axis.unique):
            return False
        is_only = all(_is_unit(found) for found in self.index_buffers.chain(axis)[:-1])
        is_coordinate = self._coordinate_of(axis, nest.in_block) in store.indices
        return is_only and is_coordinate and not axis.padded

    def _parents(self, axis: Axis, scope: _Scope) -> tuple[Expr, ...]:
        """Positions along the ancestors; fixed roots need none of them iterated."""
        above = self.index_buffers.chain(axis)[:-1]
        return tuple(self._position(found, scope) for found in above)

    def _position(self, axis: Axis, scope: _Scope) -> Expr:
        for iterator in scope.values():
            if iterator.axis.name == axis.name:
                return iterator.position
        raise UnsupportedError(
            "lower.parent", f"The axis {axis.name} has a child that is iterated without it.",
            hint=f"Add {axis.name} to the iteration, before its child.",
        )  # fmt: skip

    # --- expressions

    def _value(self, node: Any, scope: _Scope) -> Any:
        if isinstance(node, Var):
            iterator = scope.get(node.name)
            return node if iterator is None else self._coordinate(iterator, scope)
        lowered = map_children(node, lambda child: self._value(child, scope))
        return self._translated(lowered, node, scope) if isinstance(node, Load) else lowered

    def _translated(self, lowered: _Access, original: _Access, scope: _Scope) -> _Access:
        """An access whose indices are coordinates, with positions where its buffer has them."""
        buffer = self._buffers.get(lowered.buffer)
        if buffer is None:
            return lowered
        indices: list[Expr] = []
        matched: set[str] = set()
        parts = zip(buffer.axes, lowered.indices, original.indices, strict=True)
        for name, coordinate, index in parts:
            axis = self.index_buffers.axis(name)
            iterator = scope.get(index.name) if isinstance(index, Var) else None
            if iterator is not None and _is_own(axis, iterator, matched):
                matched.add(name)
                indices.append(iterator.position)
            else:
                indices.append(_looked_up(axis, coordinate, buffer))
        return msgspec.structs.replace(lowered, indices=tuple(indices))

    def _coordinate(self, iterator: _Iterator, scope: _Scope) -> Expr:
        axis = iterator.axis
        if isinstance(axis, (DenseFixed, DenseVaried)):
            return iterator.position
        return self._coordinate_of(axis, scope)

    def _coordinate_of(self, axis: Compressed, scope: _Scope) -> Expr:
        positions = (*self._parents(axis, scope), self._position(axis, scope))
        return self.index_buffers.coordinate(axis, positions)


def _kind_of(letter: str) -> Literal["S", "R"]:
    return "R" if letter == "R" else "S"


def _nested(loops: list[tuple[str, Expr]], block: Block) -> Stmt:
    result: Stmt = block
    for var, extent in reversed(loops):
        result = For(var, build.ZERO, extent, (result,))
    return result


def _is_unit(axis: Axis) -> bool:
    return isinstance(axis, DenseFixed) and axis.length == build.ONE


def _is_own(axis: Axis, iterator: _Iterator, matched: set[str]) -> bool:
    """Whether a position along the iterated axis is one along the buffer's."""
    is_same = iterator.axis.name == axis.name
    return is_same and (axis.parent is None or axis.parent in matched)


def _looked_up(axis: Axis, coordinate: Expr, buffer: SparseBuffer) -> Expr:
    if isinstance(axis, DenseFixed):
        return coordinate
    raise UnsupportedError(
        "lower.search",
        f"An access of {buffer.name} looks a coordinate of {axis.name} up, which is not lowered yet.",
        hint=f"Iterate {axis.name} itself, or store the operand over a dense axis.",
    )
