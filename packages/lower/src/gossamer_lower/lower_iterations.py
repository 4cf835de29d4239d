"""Coordinate stage to position stage: each iteration becomes loops around one block.

An access by coordinates becomes one by positions: an index that is the iterator of the buffer's own
axis (with the parent's iterator before it) stays a position; any other index is translated to its
coordinate, which is a position in a dense axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from gossamer_ir import build
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.names import Namer
from gossamer_ir.nodes import (
    STATEMENTS,
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
from gossamer_ir.walk import map_children
from gossamer_lower.stages import map_functions, names_of


def lower_iterations(module: Module) -> Module:
    """Lowers every iteration of a coordinate-stage module; the result is at the position stage.

    Raises `UnsupportedError` (`lower.fuse`, `lower.attach`, `lower.search`) for what is in the
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
    """An iterated axis: the variable that stands for the position along it."""

    axis: Axis
    position: Expr


_Access = TypeVar("_Access", Load, Store)
_Scope = Mapping[str, _Iterator]
"""Iterators in force, by the name of the iteration's variable."""


def _lower_function(function: Function) -> Function:
    lowering = _Lowering(function)
    body = lowering.statements(function.body, {})
    buffers = (*function.buffers, *lowering.index_buffers())
    return msgspec.structs.replace(function, body=body, buffers=buffers)


class _Lowering:
    """The tables of one function."""

    def __init__(self, function: Function) -> None:
        self._axes = {axis.name: axis for axis in function.axes}
        self._buffers = {
            buffer.name: buffer for buffer in function.buffers if isinstance(buffer, SparseBuffer)
        }
        self._namer = Namer(names_of(function))
        self._index_buffers: dict[str, SparseBuffer] = {}
        for axis in function.axes:
            self._declare_index_buffers(axis)

    def index_buffers(self) -> Iterable[SparseBuffer]:
        return self._index_buffers.values()

    # --- axes

    def _declare_index_buffers(self, axis: Axis) -> None:
        parents = tuple(found.name for found in self._chain(axis)[:-1])
        if isinstance(axis, (DenseVaried, CompressedVaried)):
            self._index_buffers[f"{axis.name}.indptr"] = SparseBuffer(
                self._namer.fresh(f"{axis.name}_indptr"),
                parents,
                axis.indptr_dtype,
                handle=axis.indptr,
                extra_storage=1,
            )
        if isinstance(axis, (CompressedFixed, CompressedVaried)):
            self._index_buffers[f"{axis.name}.indices"] = SparseBuffer(
                self._namer.fresh(f"{axis.name}_indices"),
                (*parents, axis.name),
                axis.indices_dtype,
                handle=axis.indices,
            )

    def _chain(self, axis: Axis) -> tuple[Axis, ...]:
        """The axis with its ancestors, root first."""
        chain = [axis]
        while chain[0].parent is not None:
            chain.insert(0, self._axes[chain[0].parent])
        return tuple(chain)

    def _load_index(self, which: str, indices: tuple[Expr, ...]) -> Expr:
        buffer = self._index_buffers[which]
        return build.widen(Load(buffer.name, indices, buffer.dtype))

    def _extent(self, axis: Axis, parents: tuple[Expr, ...]) -> Expr:
        match axis:
            case DenseFixed():
                return axis.length
            case CompressedFixed():
                return axis.width
            case _:
                key, last = f"{axis.name}.indptr", parents[-1]
                following = (*parents[:-1], build.add(last, build.ONE))
                return build.sub(self._load_index(key, following), self._load_index(key, parents))

    # --- statements

    def statements(self, body: tuple[Stmt, ...], scope: _Scope) -> tuple[Stmt, ...]:
        """Lowers statements under the iterators of outer iterations."""
        return tuple(self._statement(stmt, scope) for stmt in body)

    def _statement(self, stmt: Stmt, scope: _Scope) -> Stmt:
        if isinstance(stmt, Iteration):
            return self._iteration(stmt, scope)
        lowered: Stmt = map_children(stmt, lambda child: self._below(child, scope))
        if isinstance(lowered, Store) and isinstance(stmt, Store):
            return self._translated(lowered, stmt, scope)
        return lowered

    def _below(self, child: Any, scope: _Scope) -> Any:
        """What stands in a statement: further statements or expressions."""
        return (
            self._statement(child, scope)
            if isinstance(child, STATEMENTS)
            else self._value(child, scope)
        )

    def _iteration(self, node: Iteration, scope: _Scope) -> Stmt:
        inner_loops, inner_blocks = dict(scope), dict(scope)
        iters, nest, predicate = [], [], None
        for item, kind, name in zip(node.axes, node.kinds, node.vars, strict=True):
            axis = self._iterated(item)
            var = self._namer.fresh(f"v{name}")
            loop_parents = self._parents(axis, inner_loops)
            block_parents = self._parents(axis, inner_blocks)
            nest.append((name, self._extent(axis, loop_parents)))
            domain = Range(build.ZERO, self._extent(axis, block_parents))
            iters.append(BlockIter(var, "R" if kind == "R" else "S", domain, build.index_var(name)))
            inner_loops[name] = _Iterator(axis, build.index_var(name))
            inner_blocks[name] = _Iterator(axis, build.index_var(var))
            predicate = build.conjunction(predicate, self._is_element(axis, block_parents, var))
        init = self.statements(node.init, inner_blocks)
        block = Block(
            node.name,
            tuple(_with_kind(found, init) for found in iters),
            self.statements(node.body, inner_blocks),
            init=init,
            predicate=predicate,
            annotations=node.annotations,
        )
        return _nest(nest, block)

    def _iterated(self, item: object) -> Axis:
        if isinstance(item, OverAxis):
            return self._axes[item.axis]
        kind = "fuse" if "Fuse" in type(item).__name__ else "attach"
        raise UnsupportedError(
            f"lower.{kind}", f"An iteration over {kind}(...) is not lowered yet.",
            hint="Iterate the axes one by one.",
        )  # fmt: skip

    def _parents(self, axis: Axis, scope: _Scope) -> tuple[Expr, ...]:
        """Positions along the ancestors; fixed roots need none of them iterated."""
        return tuple(self._position(found, scope) for found in self._chain(axis)[:-1])

    def _position(self, axis: Axis, scope: _Scope) -> Expr:
        for iterator in scope.values():
            if iterator.axis.name == axis.name:
                return iterator.position
        raise UnsupportedError(
            "lower.parent", f"The axis {axis.name} has a child that is iterated without it.",
            hint=f"Add {axis.name} to the iteration, before its child.",
        )  # fmt: skip

    def _is_element(self, axis: Axis, parents: tuple[Expr, ...], var: str) -> Expr | None:
        """What an iterated slot of a padded axis must fulfil."""
        if not isinstance(axis, (CompressedFixed, CompressedVaried)) or not axis.padded:
            return None
        slot = self._load_index(f"{axis.name}.indices", (*parents, build.index_var(var)))
        return Compare("ne", slot, axis.length)

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
            axis = self._axes[name]
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
        parents = self._parents(axis, scope)
        return self._load_index(f"{axis.name}.indices", (*parents, iterator.position))


def _nest(loops: list[tuple[str, Expr]], block: Block) -> Stmt:
    result: Stmt = block
    for var, extent in reversed(loops):
        result = For(var, build.ZERO, extent, (result,))
    return result


def _with_kind(found: BlockIter, init: tuple[Stmt, ...]) -> BlockIter:
    """An iterator under which several points meet in one initialised element is a reduction.

    It is none where the element's position along some dimension is the iterator itself.
    """
    is_element = all(
        build.index_var(found.var) in stmt.indices for stmt in init if isinstance(stmt, Store)
    )
    return found if is_element else msgspec.structs.replace(found, kind="R")


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
