"""Position stage to loop stage: sparse buffers become ordinary ones.

Varied axes are flattened into the dimension of their parent, fixed axes stay dimensions: `A[vi, vj]` over
the axes (I, J) of CSR becomes `A_data[J_indptr[vi] + vj]`; a BSR buffer gets the shape `[nnzb, b, b]`.
The properties of axes become facts about their index buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec.structs import replace

from gossamer_ir.analysis.statements.atomic_accumulation import (
    atomic_annotation,
    is_atomic,
    shared_names,
)
from gossamer_ir.core.annotations import ATOMIC
from gossamer_ir.core.axis_kinds import is_varied
from gossamer_ir.core.build import ZERO, add, fill_of, index, index_var, mul, sub
from gossamer_ir.core.conditions import short_circuit_or
from gossamer_ir.core.statement_kinds import CHECKING_STMTS
from gossamer_ir.nodes import (
    Binary,
    Block,
    Combine,
    Compare,
    Expr,
    For,
    Function,
    Guard,
    If,
    IfThenElse,
    Let,
    Load,
    Module,
    Prefetch,
    Range,
    Region,
    Search,
    Select,
    SparseBuffer,
    Stmt,
    Store,
    Var,
)
from gossamer_ir.traversal.access_types import INDEXED_NODES
from gossamer_ir.traversal.fields import LEAVES
from gossamer_ir.traversal.rewrite import map_children
from gossamer_ir.verify.statements.region_coverage import without_false_regions
from gossamer_lower.axes.fiber_positions import element_number, position_in_fiber
from gossamer_lower.axes.subset_relations import relations_of_fibers
from gossamer_lower.buffers.conditions.fiber_conditions import FiberConditions, ranges_of
from gossamer_lower.buffers.layout.ordinary_buffers import OrdinaryBuffers
from gossamer_lower.buffers.layout.ordinary_facts import facts_of_axes, stated_facts
from gossamer_lower.buffers.layout.position_conditions import PositionConditions
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statements.combine_after_checks import combine_after_checks
from gossamer_support.as_tuple import as_tuple

A = TypeVar("A", Load, Store, Prefetch)


@lowering_pass(takes=("position",), gives="loop", removes=("axes",))
def lower_buffers(module: Module) -> Module:
    """Replace sparse buffers by ordinary ones; properties of axes become facts about index buffers.

    Raises `UnsupportedError` (`lower.lower_buffers.missing_offsets`) for a buffer whose layout needs
    `offsets` and has none.

    >>> from gossamer_testkit.examples import ROW_SUMS
    >>> from gossamer_testkit.show import body_text
    >>> from gossamer_lower import lower_iterations
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
    return map_functions(module, _lower_function, stage="loop")


def _lower_function(function: Function) -> Function:
    lowerer = _BufferLowerer(function)
    body = lowerer.body(function.body)
    ordinary = lowerer.buffers
    buffers = ordinary.buffers(function)
    # Facts last: lowering the body may have declared more index buffers, which have facts, too.
    stated = stated_facts(ordinary, function.facts, lower=lowerer.node)
    promised = facts_of_axes(ordinary, relations_of_fibers(function))
    facts = tuple(dict.fromkeys((*stated, *promised)))
    lowered = replace(function, axes=(), relations=(), buffers=buffers, body=body, facts=facts)
    conditions = lowerer.position_conditions()
    if not conditions:
        return lowered
    # Imported late: only padded and fused axes have conditions.
    from gossamer_lower.buffers.conditions.proved_conditions import without_proved

    return without_proved(lowered, conditions)


class _BufferLowerer:
    """Rewrites the accesses of one function."""

    def __init__(self, function: Function) -> None:
        ranges = ranges_of(function)
        self.buffers = OrdinaryBuffers(function, lower=self.node, ranges=ranges)
        self._storage = self.buffers.storage
        self._sparse = self.buffers.sparse
        self._names = self.buffers.names
        self._flat = self.buffers.flat
        self._conditions = FiberConditions(self._storage, lower=self.node, ranges=ranges)
        self._positions: dict[str, Expr] = {}

    def position_conditions(self) -> PositionConditions:
        """Return the added conditions that positions lie in their fibers."""
        return self._storage.position_conditions

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return the statements with their accesses rewritten."""
        return tuple(lowered for stmt in body for lowered in as_tuple(self.node(stmt)))

    def node(self, node: Any) -> Any:
        """Return a statement or expression with its accesses rewritten; a tuple of statements if a guard
        comes before it."""
        if type(node) is Var:
            return self._positions.get(node.name, node)
        if type(node) in LEAVES:
            return node
        # Before the children are lowered: its ranges are positions, which are replaced as a whole.
        if isinstance(node, Region) and node.buffer in self._sparse:
            return self._region(node)
        if isinstance(node, Combine):
            return self._combine(node)
        if isinstance(node, Let):
            return self._let(node)
        lowered = map_children(node, self.node)
        if isinstance(lowered, For):
            return self._loop(lowered)
        if isinstance(lowered, Block):
            # An access out of bounds of its buffer is in no region, so declared regions may be false.
            return without_false_regions(lowered)
        if type(lowered) in (*INDEXED_NODES, Region) and lowered.buffer in self._flat:
            return replace(lowered, buffer=self._flat[lowered.buffer])
        if isinstance(lowered, CHECKING_STMTS):
            return self._check(lowered)
        if isinstance(lowered, Compare):
            return self._without_fiber_offset(lowered)
        if type(lowered) in ACCESS_RULES and lowered.buffer in self._sparse:
            return ACCESS_RULES[type(lowered)](self, lowered)
        return lowered

    def _let(self, let: Let) -> Let:
        """Return a let. That of a position that an exact search finds becomes one of the element, in terms of
        which positions and offsets are simpler."""
        value = self.node(let.value)
        position, absent = value, index(-1)
        if isinstance(value, IfThenElse) and value.if_false == absent:
            position = value.if_true
        match position:
            case Select(if_true=Search(kind="exact") as search, if_false=Binary(rhs=start)):
                is_position = position == position_in_fiber(search, start)
            case Search(kind="exact") as search:
                start, is_position = ZERO, True
            case _:
                is_position = False
        if not is_position:
            return Let(let.var, value)
        element = let.var
        if start != ZERO:
            element = index_var(self.buffers.namer.fresh(f"{let.var.name}_element"))
            self._positions[let.var.name] = position_in_fiber(element, start)
        self._storage.found[element] = search
        if isinstance(value, IfThenElse):
            return Let(element, IfThenElse(value.condition, search, absent))
        return Let(element, search)

    def _loop(self, loop: For) -> For:
        """Return the loop, in whose `atomic` annotation shared buffers have their new names."""
        names = shared_names(loop) if is_atomic(loop) else None
        if names is None:
            return loop
        mark = atomic_annotation(self._names.get(name, name) for name in names)
        annotations = tuple(mark if item[0] == ATOMIC else item for item in loop.annotations)
        return replace(loop, annotations=annotations)

    def load(self, load: Load) -> Expr:
        """Return a load, or the fill value if a position is not in its varied fiber."""
        buffer = self._sparse[load.buffer]
        present = self._conditions.present(buffer, load.indices)
        if present is None:
            return self.flatten_access(load)
        # The predicate comes first: where it is false, the condition, which reads index arrays, must not run.
        plain = replace(load, predicate=None, passthrough=None)
        value = IfThenElse(present, self.flatten_access(plain), fill_of(buffer))
        if load.predicate is None or load.passthrough is None:
            return value
        return IfThenElse(load.predicate, value, load.passthrough)

    def store(self, store: Store) -> Store | tuple[Stmt, ...]:
        """Return a store, after a guard if a position may lie outside its varied fiber."""
        present = self._conditions.present(self._sparse[store.buffer], store.indices)
        if present is None:
            return self.flatten_access(store)
        guard = Guard(present, self._names[store.buffer])
        plain = self.flatten_access(replace(store, predicate=None))
        return (guard, plain) if store.predicate is None else (If(store.predicate, (guard, plain)),)

    def _combine(self, node: Combine) -> tuple[Stmt, ...]:
        """Return the combination, after guards for the elements that may be absent."""
        lowered = [stmt for store in node.stores for stmt in as_tuple(self.node(store))]
        return combine_after_checks(node.reducer, lowered)

    def flatten_access(self, access: A) -> A:
        """Return the access as one of the ordinary buffer."""
        indices = self._indices(self._sparse[access.buffer], access.indices)
        return replace(access, buffer=self._names[access.buffer], indices=indices)

    def _check(self, check: Any) -> Any:
        name = self._names.get(check.buffer, check.buffer)
        return replace(check, buffer=name)

    def _region(self, region: Region) -> Region:
        """Return the whole ordinary buffer as region: declared regions of sparse buffers are widened."""
        ordinary = self.buffers.ordinary(self._sparse[region.buffer])
        ranges = tuple(Range(ZERO, extent) for extent in ordinary.shape)
        return Region(ordinary.name, ranges)

    def search(self, node: Search) -> Expr:
        """Return a search in one fiber as a search in the whole array, with a result relative to the fiber.
        If the window does not lie in the fiber, it is moved out of bounds, where the check fails."""
        buffer = self._sparse[node.buffer]
        *prefix, start = self._indices(buffer, (*node.prefix, ZERO))
        begin = add(start, node.begin)
        end = element_number(start, node.end, self._storage.found)
        fibers = list(self._storage.fibers(buffer, (*node.prefix, node.begin)))
        if is_varied(self.buffers.axes[buffer.axes[-1]]):
            fiber = fibers.pop()
            extent: Expr | None = fiber.extent()
            # The end of the fiber as it is loaded, not the sum of its begin and its length.
            if self._conditions.exceeds(node.end, fiber.length()) == 0:
                end = fiber.end
        else:
            extent = self._storage.flattened_extent(buffer)
        location = self._conditions.element_in_fibers(fibers)
        if extent is not None:
            location.add(*self._conditions.window_conditions(node, extent))
        inside = location.present_condition()
        if inside is not None:
            inside = short_circuit_or(Compare("ge", node.begin, node.end), inside)
            begin = IfThenElse(inside, begin, index(-1))
            end = IfThenElse(inside, end, ZERO)
        search = replace(
            node, buffer=self._names[node.buffer], prefix=tuple(prefix), begin=begin, end=end
        )
        return position_in_fiber(search, start) if node.kind == "exact" else sub(search, start)

    def _without_fiber_offset(self, condition: Compare) -> Compare:
        """Return the condition that a search succeeded without the offset of the fiber: -1 stays -1."""
        match condition:
            case Compare(op="ge", lhs=Select(if_true=element), rhs=zero) if zero == ZERO and (
                isinstance(element, Search) or element in self._storage.found
            ):
                return Compare("ge", element, zero)
        return condition

    def _indices(self, buffer: SparseBuffer, positions: tuple[Expr, ...]) -> tuple[Expr, ...]:
        by_axis = dict(zip(buffer.axes, positions, strict=True))
        dimensions = self._storage.dimensions(buffer)
        offsets = [self._storage.offset(axes, by_axis) for axes in dimensions]
        if not buffer.extra_storage:
            return tuple(offsets)
        offset: Expr = ZERO
        for dimension, part in zip(dimensions, offsets, strict=True):
            before = mul(offset, self._storage.extent(dimension))
            offset = element_number(before, part, self._storage.found)
        return (offset,)


ACCESS_RULES: dict[type[Any], Callable[[_BufferLowerer, Any], Any]] = {
    Load: _BufferLowerer.load,
    Search: _BufferLowerer.search,
    Store: _BufferLowerer.store,
    Prefetch: _BufferLowerer.flatten_access,
}
"""Rewriting of each type of node that addresses elements of a sparse buffer. A test compares the table
with the nodes of the stage."""
