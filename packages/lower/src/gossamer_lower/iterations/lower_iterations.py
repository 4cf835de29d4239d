"""Coordinate stage to position stage: each iteration becomes a loop nest around one block.

Accesses by coordinates become accesses by positions (`coordinate_lookup`). An index that is the iterator
of the buffer's own axis, below the iterator of its parent, is already a position. Any other index is
translated to a coordinate, which is a position along a dense axis and is searched for along a compressed
one. A load of an absent element returns the fill value of the buffer; a store to one stops the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from gossamer_ir.core import build
from gossamer_ir.core.annotations import COMPOSABLE, is_composable, without_annotation
from gossamer_ir.core.lowered_names import fused_name
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    STATEMENTS,
    AttachAxis,
    Axis,
    Block,
    BlockIter,
    Combine,
    Compare,
    CompressedFixed,
    CompressedVaried,
    DenseFixed,
    Expr,
    For,
    Function,
    FuseAxes,
    Guard,
    If,
    IfThenElse,
    Iteration,
    Load,
    Module,
    OverAxis,
    Prefetch,
    Range,
    Search,
    SparseBuffer,
    Stmt,
    Store,
    Var,
)  # fmt: skip
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.references import free_vars
from gossamer_ir.traversal.rewrite import map_children, rewrite
from gossamer_lower.iterations.helpers.coordinate_lookup import (
    AxisIterator,
    AxisIterators,
    ElementLocation,
    Index,
    Lookups,
    under,
)
from gossamer_lower.iterations.helpers.fused_axes import (
    Fused,
    init_visits_others,
    items_of,
    where_searchable,
    with_init_apart,
)
from gossamer_lower.iterations.helpers.index_buffers import IndexBuffers
from gossamer_lower.iterations.helpers.subset_relations import relations_of_fibres
from gossamer_lower.lowering_pass import lowering_pass, map_functions


@lowering_pass(takes=("coordinate",), gives="position", removes=("iterations",))
def lower_iterations(module: Module) -> Module:
    """Turns each iteration into a loop nest around one block; accesses are by positions.

    The iterations of a function with the attribute `composable` are parts of one computation: the inits
    of all of them run before the first. Raises `UnsupportedError` (`lower.unsorted_lookup`,
    `lower.parent`) for iterations that cannot be lowered.

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
    return map_functions(module, _lower_function, stage="position")


class _Nest(msgspec.Struct):
    """The loops and block iterators that an iteration becomes, and the iterators for its variables, in
    the headers of the loops and in the block."""

    in_loops: AxisIterators
    in_block: AxisIterators
    loops: list[tuple[str, Expr]] = []
    iters: list[BlockIter] = []
    fused: set[str] = set()
    predicate: Expr | None = None


def _lower_function(function: Function) -> Function:
    lowerer = _IterationLowerer(function)
    is_parted = is_composable(function)
    body = lowerer.with_inits_first(function.body) if is_parted else function.body
    body = lowerer.statements(body, {})
    buffers = (*function.buffers, *lowerer.index_buffers.declared())
    notes = without_annotation(function, COMPOSABLE).annotations
    return msgspec.structs.replace(function, body=body, buffers=buffers, annotations=notes)


class _IterationLowerer:
    """Lowers the statements of one function."""

    def __init__(self, function: Function) -> None:
        self._buffers = {
            buffer.name: buffer for buffer in function.buffers if isinstance(buffer, SparseBuffer)
        }
        self._namer = namer_of(function)
        self.index_buffers = IndexBuffers(function.axes, self._namer)
        self._lookups = Lookups(self.index_buffers, relations_of_fibres(function))

    # --- statements

    def with_inits_first(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return the iterations of a composable function, preceded by the inits of all of them."""
        inits: list[Stmt] = []
        rest: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Iteration) and stmt.init:
                init, stmt = with_init_apart(stmt, self.index_buffers, self._namer)
                inits.append(init)
            rest.append(stmt)
        return (*inits, *rest)

    def statements(self, body: tuple[Stmt, ...], scope: AxisIterators) -> tuple[Stmt, ...]:
        """Lowers statements inside the outer iterations whose iterators are in `scope`."""
        return tuple(lowered for stmt in body for lowered in self._statement(stmt, scope))

    def _statement(self, stmt: Stmt, scope: AxisIterators) -> tuple[Stmt, ...]:
        if isinstance(stmt, Iteration):
            return self._iteration(stmt, scope)
        if isinstance(stmt, Store) and stmt.buffer in self._buffers:
            return self._store(stmt, scope)
        if isinstance(stmt, Combine):
            return self._combine(stmt, scope)
        if isinstance(stmt, Prefetch) and stmt.buffer in self._buffers:
            return self._prefetch(stmt, scope)
        return (map_children(stmt, lambda child: self._below(child, scope)),)

    def _below(self, child: Any, scope: AxisIterators) -> Any:
        """Lowers a child of a statement: a statement or an expression."""
        if isinstance(child, STATEMENTS):
            return self._statement(child, scope)
        return self._value(child, scope)

    def _iteration(self, node: Iteration, scope: AxisIterators) -> tuple[Stmt, ...]:
        if node.init and init_visits_others(node, self.index_buffers):
            parts = with_init_apart(node, self.index_buffers, self._namer)
            return tuple(stmt for part in parts for stmt in self._iteration(part, scope))
        nest = _Nest(dict(scope), dict(scope))
        for item, kinds, names in items_of(node):
            if isinstance(item, FuseAxes):
                self._add_fused(nest, item, kinds=kinds, names=names)
            else:
                self._add(nest, item, kind=kinds, name=names[0])
        init = self.statements(node.init, nest.in_block)
        block = Block(
            node.name,
            tuple(self._with_kind(iterator, init, nest=nest) for iterator in nest.iters),
            self.statements(node.body, nest.in_block),
            init=init,
            predicate=nest.predicate,
            annotations=node.annotations,
        )
        return (where_searchable(_nested(nest.loops, block)),)

    def _add(self, nest: _Nest, item: OverAxis | AttachAxis, *, kind: str, name: str) -> None:
        var = self._namer.fresh(f"v{name}")
        around = self._enter(nest.in_loops, item, name=name, position=build.index_var(name))
        inside = self._enter(nest.in_block, item, name=name, position=build.index_var(var))
        nest.loops.append((name, around))
        domain = Range(build.ZERO, inside)
        kind = "S" if _is_unit(self.index_buffers.axis(item.axis)) else kind
        nest.iters.append(BlockIter(var, _kind_of(kind), domain, build.index_var(name)))
        self._skip_padding(nest, name)

    def _enter(
        self, scope: AxisIterators, item: OverAxis | AttachAxis, *, name: str, position: Expr
    ) -> Expr:
        """Adds an iterator to the scope, and returns the number of positions in its fibre."""
        axis = self.index_buffers.axis(item.axis)
        place = ElementLocation()
        above = self._fibre(axis, item, scope=scope, place=place)
        scope[name] = AxisIterator(axis, position, above)
        extent = self.index_buffers.extent(axis, above or ())
        return under(place.is_present(), extent, otherwise=build.ZERO)

    def _fibre(
        self,
        axis: Axis,
        item: OverAxis | AttachAxis,
        *,
        scope: AxisIterators,
        place: ElementLocation,
    ) -> tuple[Expr, ...] | None:
        """Return the positions along the ancestors of an iterated axis; None for a dense axis that is
        iterated without them."""
        if isinstance(item, AttachAxis):
            return self._attached(axis, item, scope=scope, place=place)
        if axis.parent is None:
            return ()
        path = self._path(axis.parent, scope)
        if path is None and not isinstance(axis, DenseFixed):
            raise _no_parent(_without_iterator(axis.parent, scope))
        return path

    def _attached(
        self, axis: Axis, item: AttachAxis, *, scope: AxisIterators, place: ElementLocation
    ) -> tuple[Expr, ...]:
        """Return the positions along the ancestors that the coordinate of another iterator selects."""
        assert axis.parent is not None
        parent = self.index_buffers.axis(axis.parent)
        over = _innermost(item.parent, scope)
        assert over is not None
        above = self._above(parent, scope)
        return (*above, self._lookups.attached(parent, above, over=over, place=place))

    def _above(self, axis: Axis, scope: AxisIterators) -> tuple[Expr, ...]:
        """Return the positions along the ancestors of an axis that is not iterated itself."""
        chain = self.index_buffers.chain(axis)[:-1]
        path = self._path(chain[-1].name, scope) if chain else ()
        if path is None and not all(_is_unit(ancestor) for ancestor in chain):
            raise _no_parent(chain[-1].name)
        return (build.ZERO,) * len(chain) if path is None else path

    def _path(self, name: str, scope: AxisIterators) -> tuple[Expr, ...] | None:
        """Return the positions of the iterator over an axis, root first; None if it has none."""
        iterator = _innermost(name, scope)
        return None if iterator is None else iterator.path()

    def _add_fused(
        self, nest: _Nest, item: FuseAxes, *, kinds: str, names: tuple[str, ...]
    ) -> None:
        loop = self._namer.fresh(fused_name(names))
        var = self._namer.fresh(f"v{loop}")
        around = self._enter_fused(nest.in_loops, item, names=names, count=build.index_var(loop))
        inside = self._enter_fused(nest.in_block, item, names=names, count=build.index_var(var))
        nest.loops.append((loop, around))
        kind = _kind_of("S" if set(kinds) == {"S"} else "R")
        domain = Range(build.ZERO, inside)
        nest.iters.append(BlockIter(var, kind, domain, build.index_var(loop)))
        nest.fused.add(var)
        for name in names:
            self._skip_padding(nest, name)

    def _enter_fused(
        self, scope: AxisIterators, item: FuseAxes, *, names: tuple[str, ...], count: Expr
    ) -> Expr:
        """Adds the iterators of fused axes to the scope, and returns the number of elements."""
        axes = tuple(self.index_buffers.axis(name) for name in item.axes)
        above = self._fibre(axes[0], OverAxis(axes[0].name), scope=scope, place=ElementLocation())
        if above is None:
            raise _no_parent(axes[0].parent)
        chain = self.index_buffers.chain(axes[0])[:-1]
        fused = Fused(axes, self.index_buffers, self.index_buffers.element(chain, above))
        for name, axis, position in zip(names, axes, fused.positions(count), strict=True):
            scope[name] = AxisIterator(axis, position, above)
            above = (*above, position)
        return fused.extent()

    def _skip_padding(self, nest: _Nest, name: str) -> None:
        """Adds the predicate that a slot of a padded axis is an element: padding holds the coordinate
        `length`."""
        iterator = nest.in_block[name]
        axis = iterator.axis
        if isinstance(axis, (CompressedFixed, CompressedVaried)) and axis.padded:
            slot = Compare("ne", self._lookups.coordinate(iterator), axis.length)
            nest.predicate = build.conjunction(nest.predicate, slot)

    def _with_kind(self, iterator: BlockIter, init: tuple[Stmt, ...], *, nest: _Nest) -> BlockIter:
        """Return the iterator, as a reduction if several of its values may initialize the same element.

        It is spatial if it always has the same value, if the position of the element along some dimension
        is the iterator itself, or if the positions along fused axes are all those of the fused iterator.
        """
        is_element = self._has_one_value(iterator, nest) or all(
            self._is_determined_by(stmt, iterator.var, nest=nest)
            for stmt in init
            if isinstance(stmt, Store)
        )
        return iterator if is_element else msgspec.structs.replace(iterator, kind="R")

    def _has_one_value(self, block_iter: BlockIter, nest: _Nest) -> bool:
        """Return whether the iterator is over a dense axis with one element. The domain is compared, too:
        that of an attached axis may be empty."""
        return block_iter.domain.extent == build.ONE and any(
            _is_unit(iterator.axis) and iterator.position == build.index_var(block_iter.var)
            for iterator in nest.in_block.values()
        )

    def _is_determined_by(self, store: Store, var: str, *, nest: _Nest) -> bool:
        """Return whether the element of a store is a different one for each value of an iterator."""
        if var not in nest.fused:
            return self._is_indexed_by(store, build.index_var(var), nest=nest)
        buffer = self._buffers.get(store.buffer)
        by_axis = {} if buffer is None else dict(zip(buffer.axes, store.indices, strict=True))
        return all(
            by_axis.get(iterator.axis.name) == iterator.position
            for iterator in nest.in_block.values()
            if var in free_vars(iterator.position)
        )

    def _is_indexed_by(self, store: Store, position: Expr, *, nest: _Nest) -> bool:
        """Return whether the store's element determines the iterator, directly or through unique
        coordinates."""
        (iterator,) = (
            candidate for candidate in nest.in_block.values() if candidate.position == position
        )
        axis = iterator.axis
        if any(_is_place_of(index, position) for index in store.indices):
            return True
        if not isinstance(axis, CompressedVaried) or not (axis.sorted and axis.unique):
            return False
        is_only = all(_is_unit(ancestor) for ancestor in self.index_buffers.chain(axis)[:-1])
        is_coordinate = self._lookups.coordinate(iterator) in store.indices
        return is_only and is_coordinate and not axis.padded

    # --- accesses

    def _store(self, stmt: Store, scope: AxisIterators) -> tuple[Stmt, ...]:
        """Return a store, after a guard if the element may be absent."""
        place = self._place(stmt, self._indices(stmt, scope))
        value = self._value(stmt.value, scope)
        predicate = None if stmt.predicate is None else self._value(stmt.predicate, scope)
        present = place.is_present()
        if present is None:
            return (Store(stmt.buffer, place.positions, value, predicate),)
        stores = (Store(stmt.buffer, place.positions, _where_holds(present, value)),)
        guarded = (Guard(present, stmt.buffer), *stores)
        return guarded if predicate is None else (If(predicate, guarded),)

    def _combine(self, node: Combine, scope: AxisIterators) -> tuple[Stmt, ...]:
        """Return the combination, after guards for the elements that may be absent."""
        lowered = [stmt for store in node.stores for stmt in self._statement(store, scope)]
        stores = tuple(stmt for stmt in lowered if isinstance(stmt, Store))
        guards = (stmt for stmt in lowered if not isinstance(stmt, Store))
        return (*guards, Combine(node.reducer, stores))

    def _prefetch(self, node: Prefetch, scope: AxisIterators) -> tuple[Stmt, ...]:
        """Return a prefetch under the condition that the element is present. A prefetch must not fail, so
        the bounds of dense axes are checked before index arrays are read."""
        indices, axes = self._indices(node, scope), self._buffers[node.buffer].axes
        place, inside = self._place(node, indices), self._lookups.inside(axes, indices)
        whole = ElementLocation(conditions=(*inside, *place.conditions))
        present = whole.is_found(_coordinates(indices))
        hint = Prefetch(node.buffer, place.positions)
        return (hint if present is None else If(present, (hint,)),)

    def _load(self, node: Load, scope: AxisIterators) -> Expr:
        """Return a load, or the fill value if the element is absent."""
        buffer, indices = self._buffers[node.buffer], self._indices(node, scope)
        place = self._place(node, indices)
        fill = buffer.fill if buffer.fill is not None else build.zero_of(buffer.dtype)
        predicate, otherwise = (
            None if operand is None else self._value(operand, scope)
            for operand in (node.predicate, node.passthrough)
        )
        load = Load(node.buffer, place.positions, node.dtype, predicate, otherwise)
        present = place.is_found(_coordinates(indices))
        return under(present, load, otherwise=fill)

    def _place(self, node: Load | Store | Prefetch, indices: Sequence[Index]) -> ElementLocation:
        return self._lookups.place(self._buffers[node.buffer].axes, indices, of=node.buffer)

    def _indices(self, node: Load | Store | Prefetch, scope: AxisIterators) -> list[Index]:
        return [
            Index(
                self._value(index, scope),
                scope.get(index.name) if isinstance(index, Var) else None,
            )
            for index in node.indices
        ]

    def _value(self, node: Any, scope: AxisIterators) -> Any:
        if isinstance(node, Var):
            iterator = scope.get(node.name)
            return node if iterator is None else self._lookups.coordinate(iterator)
        if isinstance(node, Load) and node.buffer in self._buffers:
            return self._load(node, scope)
        return map_children(node, lambda child: self._value(child, scope))


def _kind_of(letter: str) -> Literal["S", "R"]:
    return "R" if letter == "R" else "S"


def _nested(loops: list[tuple[str, Expr]], block: Block) -> Stmt:
    result: Stmt = block
    for var, extent in reversed(loops):
        result = For(var, build.ZERO, extent, (result,))
    return result


def _is_unit(axis: Axis) -> bool:
    return isinstance(axis, DenseFixed) and axis.length == build.ONE


def _innermost(axis: str, scope: AxisIterators) -> AxisIterator | None:
    """Return the innermost iterator over an axis; None if it is not iterated."""
    return next(
        (iterator for iterator in reversed([*scope.values()]) if iterator.axis.name == axis), None
    )


def _without_iterator(name: str, scope: AxisIterators) -> str | None:
    """Return the axis whose iterator is missing to select a fibre below the axis `name`: that axis, or
    the parent of its iterator."""
    iterator = _innermost(name, scope)
    return name if iterator is None else iterator.axis.parent


def _is_place_of(index: Expr, position: Expr) -> bool:
    """Return whether an index is the position, or a search for it as a coordinate."""
    return index == position or (isinstance(index, Search) and index.value == position)


def _where_holds(condition: Expr, value: Any) -> Any:
    """Return the expression with choices by `condition` resolved, which is known to hold."""

    def chosen(node: Any) -> Any | None:
        return (
            node.if_true if isinstance(node, IfThenElse) and node.condition == condition else None
        )

    return rewrite(value, chosen)


def _no_parent(name: str | None) -> UnsupportedError:
    return UnsupportedError(
        "lower.parent",
        f"The iteration includes a child of axis '{name}', but not '{name}' itself.",
        hint=f"Add '{name}' to the iteration, before its child.",
    )  # fmt: skip


def _coordinates(indices: Iterable[Index]) -> list[Expr]:
    """Return the coordinates of the indices that are not iterators."""
    return [index.coordinate for index in indices if index.iterator is None]
