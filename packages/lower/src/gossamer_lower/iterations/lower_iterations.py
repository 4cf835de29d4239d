"""Coordinate stage to position stage: each iteration becomes a loop nest around one block.

Accesses by coordinates become accesses by positions (`coordinate_lookup`). An index that is the iterator
of the buffer's own axis, below the iterator of its parent, is already a position. Any other index is
translated to a coordinate, which is a position along a dense axis and is searched for along a compressed
one. A load of an absent element returns the fill value of the buffer; a store to one stops the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any

from msgspec.structs import replace

from gossamer_ir.analysis.statements.conditional_bodies import split_condition
from gossamer_ir.core.annotations import COMPOSABLE, is_composable, without_annotation
from gossamer_ir.core.axis_kinds import is_full
from gossamer_ir.core.build import zero_of
from gossamer_ir.core.conditions import conjunction
from gossamer_ir.core.statement_kinds import is_stmt
from gossamer_ir.facts.fact_index import fact_index
from gossamer_ir.nodes import (
    Block,
    BlockIter,
    Combine,
    Expr,
    Function,
    Guard,
    If,
    IfThenElse,
    Iteration,
    Load,
    Module,
    Node,
    Prefetch,
    Stmt,
    Store,
    Var,
)
from gossamer_ir.transform.split_init import init_visits_others, split_init
from gossamer_ir.traversal.buffer_definitions import sparse_buffers
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.rewrite import map_children, rewrite
from gossamer_lower.axes.element_location import ElementLocation
from gossamer_lower.axes.index_buffers import IndexBuffers
from gossamer_lower.axes.subset_relations import relations_of_fibers
from gossamer_lower.iterations.nests.coordinate_lookup import (
    AccessIndex,
    AxisIters,
    CoordinateTranslator,
    value_if,
)
from gossamer_lower.iterations.nests.fused_axes import where_searchable
from gossamer_lower.iterations.nests.iterator_kinds import IteratorKinds
from gossamer_lower.iterations.nests.lookup_lets import LookupLets, has_lookup
from gossamer_lower.iterations.nests.loop_nest import NestBuilder
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statements.combine_after_checks import combine_after_checks
from gossamer_support.items_by_name import items_by_name


@lowering_pass(takes=("coordinate",), gives="position", removes=("iterations",))
def lower_iterations(module: Module) -> Module:
    """Turn each iteration into a loop nest around one block; accesses are by positions.

    The iterations of a function with the attribute `composable` are parts of one computation: the inits
    of all of them run before the first. Raises `UnsupportedError` (`lower.lower_iterations.unsorted_lookup`,
    `lower.lower_iterations.missing_parent`) for iterations that cannot be lowered.

    >>> from gossamer_testkit.examples import ROW_SUMS
    >>> from gossamer_testkit.show import body_text
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


def _lower_function(function: Function) -> Function:
    lowerer = _IterationLowerer(function)
    is_parted = is_composable(function)
    body = lowerer.with_inits_first(function.body) if is_parted else function.body
    body = lowerer.stmts(body, {})
    buffers = (*function.buffers, *lowerer.index_buffers.declared_buffers())
    notes = without_annotation(function, COMPOSABLE).annotations
    return replace(function, body=body, buffers=buffers, annotations=notes)


class _IterationLowerer:
    """Lowers the statements of one function."""

    def __init__(self, function: Function) -> None:
        self._buffers = items_by_name(sparse_buffers(function.buffers))
        self._axes = items_by_name(function.axes)
        self._namer = namer_of(function)
        self._lets = LookupLets(self._namer)
        self.index_buffers = IndexBuffers(function.axes, self._namer)
        self._translator = CoordinateTranslator(self.index_buffers, relations_of_fibers(function))
        self._nests = NestBuilder(self.index_buffers, self._translator, self._namer)
        self._kinds = IteratorKinds(
            self._buffers, self.index_buffers, self._translator, facts=fact_index(function.facts)
        )

    # --- statements

    def with_inits_first(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return the iterations of a composable function, preceded by the inits of all of them."""
        inits: list[Stmt] = []
        rest: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Iteration) and stmt.init:
                init, stmt = split_init(stmt, self._axes, self._namer)
                inits.append(init)
            rest.append(stmt)
        return (*inits, *rest)

    def stmts(self, body: tuple[Stmt, ...], scope: AxisIters) -> tuple[Stmt, ...]:
        """Lower statements inside the outer iterations whose iterators are in `scope`."""
        return tuple(lowered for stmt in body for lowered in self._stmt(stmt, scope))

    def _stmt(self, stmt: Stmt, scope: AxisIters) -> tuple[Stmt, ...]:
        with self._lets.before_stmt() as lets:
            lowered = self._without_lets(stmt, scope)
        return (*lets, *lowered)

    def _without_lets(self, stmt: Stmt, scope: AxisIters) -> tuple[Stmt, ...]:
        """Lower a statement, without the lets of the look-ups that it uses."""
        if isinstance(stmt, Iteration):
            return self._iteration(stmt, scope)
        if isinstance(stmt, Combine):
            return self._combine(stmt, scope)
        if self._is_sparse_access(stmt):
            lowered: tuple[Stmt, ...] = ACCESS_RULES[type(stmt)](self, stmt, scope)
            return lowered
        return (map_children(stmt, lambda child: self._lower_child(child, scope)),)

    def _lower_child(self, child: Node, scope: AxisIters) -> Any:
        """Lower a child of a statement: a statement or an expression."""
        if is_stmt(child):
            return self._stmt(child, scope)
        return self._value(child, scope)

    def _iteration(self, node: Iteration, scope: AxisIters) -> tuple[Stmt, ...]:
        if node.init and init_visits_others(node, self._axes):
            parts = split_init(node, self._axes, self._namer)
            return tuple(stmt for part in parts for stmt in self._iteration(part, scope))
        nest = self._nests.nest_of(node, scope)
        init = self.stmts(node.init, nest.in_block)
        body = self.stmts(node.body, nest.in_block)
        iters = tuple(self._kinds.with_kind(iterator, init, nest=nest) for iterator in nest.iters)
        init, body, condition = _without_common_condition(init, body, iters)
        block = Block(
            node.name,
            iters,
            body,
            init=init,
            predicate=conjunction(nest.predicate, condition),
            annotations=node.annotations,
        )
        return (where_searchable(nest.around(block)),)

    # --- accesses

    def _is_sparse_access(self, node: Any) -> bool:
        return type(node) in ACCESS_RULES and node.buffer in self._buffers

    def store(self, stmt: Store, scope: AxisIters) -> tuple[Stmt, ...]:
        """Return a store, after a guard if the element may be absent."""
        predicate = None if stmt.predicate is None else self._value(stmt.predicate, scope)
        # Where the predicate is false, neither the indices nor the value are evaluated.
        with nullcontext() if predicate is None else self._lets.under(predicate):
            location = self._location(stmt, self._indices(stmt, scope))
            value = self._value(stmt.value, scope)
        present = location.present_condition()
        if present is None:
            return (replace(stmt, indices=location.positions, value=value, predicate=predicate),)
        stores = (
            replace(stmt, indices=location.positions, value=_with_condition_true(present, value)),
        )
        guarded = (Guard(present, stmt.buffer), *stores)
        return guarded if predicate is None else (If(predicate, guarded),)

    def _combine(self, node: Combine, scope: AxisIters) -> tuple[Stmt, ...]:
        """Return the combination, after lets of look-ups and guards for the elements that may be absent."""
        lowered = [stmt for store in node.stores for stmt in self._stmt(store, scope)]
        return combine_after_checks(node.reducer, lowered)

    def prefetch(self, node: Prefetch, scope: AxisIters) -> tuple[Stmt, ...]:
        """Return a prefetch under the condition that the element is present. A prefetch must not fail, so
        the bounds of dense axes are checked before index arrays are read."""
        indices, axes = self._indices(node, scope), self._buffers[node.buffer].axes
        inside = self._translator.inside(axes, indices)
        location = self._location(node, indices, conditions=inside)
        present = location.access_condition(_coordinates(indices))
        hint = Prefetch(node.buffer, location.positions)
        return (hint if present is None else If(present, (hint,)),)

    def load(self, node: Load, scope: AxisIters) -> Expr:
        """Return a load, or the fill value if the element is absent."""
        buffer, indices = self._buffers[node.buffer], self._indices(node, scope)
        location = self._location(node, indices)
        fill = buffer.fill if buffer.fill is not None else zero_of(buffer.dtype)
        predicate, otherwise = (
            None if operand is None else self._value(operand, scope)
            for operand in (node.predicate, node.passthrough)
        )
        load = Load(node.buffer, location.positions, node.dtype, predicate, otherwise)
        present = location.access_condition(_coordinates(indices))
        return value_if(present, load, otherwise=fill)

    def _location(
        self,
        node: Load | Store | Prefetch,
        indices: Sequence[AccessIndex],
        conditions: Iterable[Expr] = (),
    ) -> ElementLocation:
        axes = self._buffers[node.buffer].axes
        return self._translator.location(
            axes, indices, of=node.buffer, lets=self._lets, conditions=conditions
        )

    def _indices(self, node: Load | Store | Prefetch, scope: AxisIters) -> list[AccessIndex]:
        axes = map(self.index_buffers.tree.axis, self._buffers[node.buffer].axes)
        # Only then are there conditions and searches that repeat an index.
        is_looked_up = not all(map(is_full, axes))
        return [self._index(index, scope, is_looked_up=is_looked_up) for index in node.indices]

    def _index(self, index: Expr, scope: AxisIters, *, is_looked_up: bool) -> AccessIndex:
        coordinate = self._value(index, scope)
        iterator = scope.get(index.name) if isinstance(index, Var) else None
        if is_looked_up and iterator is None and has_lookup(coordinate):
            coordinate = self._lets.bind(coordinate)
        return AccessIndex(coordinate, iterator)

    def _value(self, node: Node, scope: AxisIters) -> Any:
        if isinstance(node, IfThenElse):
            return self._lets.lower_branches(node, lambda operand: self._value(operand, scope))
        if isinstance(node, Var):
            iterator = scope.get(node.name)
            return node if iterator is None else self._translator.coordinate(iterator)
        if self._is_sparse_access(node):
            return ACCESS_RULES[type(node)](self, node, scope)
        return map_children(node, lambda child: self._value(child, scope))


ACCESS_RULES: dict[type[Any], Callable[[_IterationLowerer, Any, AxisIters], Any]] = {
    Load: _IterationLowerer.load,
    Store: _IterationLowerer.store,
    Prefetch: _IterationLowerer.prefetch,
}
"""Lowering of each type of node that addresses an element of a sparse buffer: an expression to one, a
statement to several. A test compares the table with the nodes of the stage."""


def _with_condition_true(condition: Expr, value: Any) -> Any:
    """Return the expression with selections by `condition` resolved, which is known to hold."""

    def choose_branch(node: Node) -> Any | None:
        return (
            node.if_true if isinstance(node, IfThenElse) and node.condition == condition else None
        )

    return rewrite(value, choose_branch)


def _coordinates(indices: Iterable[AccessIndex]) -> list[Expr]:
    """Return the coordinates of the indices that are not iterators."""
    return [index.coordinate for index in indices if index.iterator is None]


def _without_common_condition(
    init: tuple[Stmt, ...], body: tuple[Stmt, ...], iters: Iterable[BlockIter]
) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...], Expr | None]:
    """Return the init and the body of a block without the condition under which all of both runs, and the
    condition, if it may become part of the predicate; else both as they are, and None."""
    plain, condition = split_condition(body)
    if not init:
        return init, plain, condition
    initializing, same = split_condition(init)
    reduced = {iterator.var for iterator in iters if iterator.kind == "R"}
    # A predicate that depends on reduction iterators does not apply to the init.
    if condition is None or condition != same or free_vars(condition) & reduced:
        return init, body, None
    return initializing, plain, condition
