"""Proves that each thread which executes a store stores to elements of its own."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.accesses.buffer_accesses import accesses
from gossamer_ir.analysis.bounds.overflow import overflow_of
from gossamer_ir.analysis.invariants import invariant_facts, mutable_buffers
from gossamer_ir.analysis.lane_projection import LANE, in_lane, lane_count, lanes_of_access
from gossamer_ir.analysis.statements.thread_axes import is_block_axis
from gossamer_ir.core.build import ZERO, add, index, index_var, integer_value
from gossamer_ir.core.limits import MAX_GRID_BLOCKS, MAX_SIZE
from gossamer_ir.core.operations import BINARY_KINDS
from gossamer_ir.dependence.constant_points import ConstantPoints, differ_at_points
from gossamer_ir.dependence.independence import are_unshared
from gossamer_ir.nodes import Binary, Expr, For, Function, If, Stmt, Store
from gossamer_ir.traversal.buffer_uses import buffers_read
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import bound_vars
from gossamer_ir.traversal.rewrite import map_children
from gossamer_ir.traversal.substitute import resolve
from gossamer_lower.device.let_dependences import values_of_vars
from gossamer_lower.device.selected_threads import StoreContext, ThreadSelection


class OwnElements:
    """Proves of a function with kernels that different threads store to different elements.

    >>> from gossamer_ir.core.build import ONE, floordiv
    >>> t = index_var("t")
    >>> for at in (t, floordiv(t, index(2))):
    ...     loop = For("t", ZERO, index(8), (Store("Y", (at,), ONE),), thread="threadIdx.x")
    ...     own = OwnElements(Function("f", (), (loop,)))
    ...     own.first_shared(loop.body[0], StoreContext((loop,)), loops=[loop]) is None
    True
    False
    """

    def __init__(self, function: Function) -> None:
        self._function = function
        self._values = values_of_vars(function)
        self._changing = mutable_buffers(function)
        self._selection = ThreadSelection(function)

    def first_shared(
        self,
        store: Store,
        context: StoreContext,
        *,
        loops: Sequence[For],
        equal: Sequence[For] = (),
    ) -> For | None:
        """Return the first of some loops around a store of which different iterations are not proved to store
        to different elements; None if there is none. The iterations of the loops `equal` are the same ones,
        those of any other loop may differ, too."""
        if not loops:
            return None
        instance = self._instance(store, context)
        fixed = {loop.var for loop in equal}
        if self._differ_at_points(instance, [loop.var for loop in loops], fixed):
            return None
        for loop in loops:
            if not self._are_apart(instance, loop.var, fixed) and not (
                self._selection.is_of_one_thread(loop.var, context, store.indices)
            ):
                return loop
            fixed.add(loop.var)
        return None

    def _instance(self, store: Store, context: StoreContext) -> _StoreInstance:
        lanes = lanes_of_access(store)
        lane_loop = () if lanes is None else (For(LANE.name, ZERO, lane_count(lanes), ()),)
        loops = {
            loop.var: self._serial(loop)
            for loop in (*context.loops, *lane_loop)
            if loop.var not in self._values
        }
        indices, conditions = (
            tuple(in_lane(resolve(expr, self._values), LANE) for expr in exprs)
            for exprs in (store.indices, context.conditions)
        )
        bound = bound_vars(context.loops[:1]) - self._values.keys()
        return _StoreInstance(store.buffer, indices, conditions, loops, bound - loops.keys())

    def _serial(self, loop: For) -> For:
        """Return a loop without a body and an axis, with bounds in terms of the variables of loops."""
        start, extent = (resolve(bound, self._values) for bound in (loop.start, loop.extent))
        # A size of an array may be a place value of an index; any other number of blocks is bounded.
        is_size = overflow_of(self._function).bound(extent) <= MAX_SIZE
        if is_block_axis(loop.thread) and not is_size:
            extent = index(MAX_GRID_BLOCKS)
        return For(loop.var, start, extent, ())

    def _differ_at_points(
        self, instance: _StoreInstance, names: Sequence[str], fixed: Set[str]
    ) -> bool:
        """Return whether all iterations that the indices depend on can be tried, and differ."""
        used = {*names, *free_vars(*instance.indices, *instance.conditions)}
        varying = {*instance.loops, *instance.exchanged} - fixed

        def is_equal(expr: Expr) -> bool:
            is_unchanged = buffers_read(expr).isdisjoint(self._changing)
            return is_unchanged and free_vars(expr).isdisjoint(varying)

        return differ_at_points(
            names,
            instance.indices,
            points=ConstantPoints(loop for loop in instance.loops.values() if loop.var in used),
            conditions=instance.conditions,
            equal=is_equal,
        )

    def _are_apart(self, instance: _StoreInstance, name: str, fixed: Set[str]) -> bool:
        """Return whether different iterations of a loop are proved to store to different elements, by the
        tests for loops whose iterations run concurrently."""
        # Each thread has another value of what threads exchange.
        exchanged = instance.exchanged
        bounds = (bound for loop in instance.loops.values() for bound in (loop.start, loop.extent))
        if not free_vars(*instance.indices, *bounds).isdisjoint(exchanged):
            return False
        bounder = _Bounder(instance, {name, *fixed})
        body: Stmt = Store(
            instance.buffer, tuple(map(bounder.with_loop_vars, instance.indices)), ZERO
        )
        for condition in instance.conditions:
            if free_vars(condition).isdisjoint(exchanged):
                body = If(condition, (body,))
        inner = [loop for loop in instance.loops.values() if loop.var not in (name, *fixed)]
        loop = instance.loops[name]
        for inner_loop in reversed((*inner, *bounder.loops.values())):
            body = replace(inner_loop, body=(body,))
        outer = [instance.loops[var] for var in instance.loops if var in fixed]
        first = replace(loop, body=(body,))
        nest: Stmt = first
        for outer_loop in reversed(outer):
            nest = replace(outer_loop, body=(nest,))
        return are_unshared(
            list(accesses(first.body, buffers={instance.buffer})),
            first,
            outer=outer,
            changing=self._changing,
            # Not the facts of the function: it may write what they are about elsewhere.
            function=replace(self._function, body=(nest,), facts=invariant_facts(self._function)),
        )


class _StoreInstance(msgspec.Struct, frozen=True):
    """A store of one element, in terms of the variables of the loops around it, one of which may be over the
    lanes of a vector."""

    buffer: str
    indices: tuple[Expr, ...]
    conditions: tuple[Expr, ...]
    loops: dict[str, For]
    exchanged: Set[str]
    """Other variables that are bound in the kernel, such as the results of shuffles."""


class _Bounder:
    """Replaces what is not a sum or a product, such as a quotient, by the variable of a loop over a range
    that has all its values. It stays if it depends on one of the variables that are `kept`."""

    def __init__(self, instance: _StoreInstance, kept: Set[str]) -> None:
        self._instance, self._kept = instance, kept
        self.loops: dict[Expr, For] = {}
        self._starts: dict[Expr, int] = {}

    def with_loop_vars(self, node: Any) -> Any:
        """Return an expression with such parts replaced."""
        is_affine = not isinstance(node, Binary) or BINARY_KINDS[node.op].is_affine
        if is_affine or not free_vars(node).isdisjoint(self._kept):
            return map_children(node, self.with_loop_vars)
        if node not in self.loops:
            values = self._range_of(node)
            if values is None:
                return map_children(node, self.with_loop_vars)
            name = f"{LANE.name} {len(self.loops)}"
            self.loops[node] = For(name, ZERO, index(len(values)), ())
            self._starts[node] = values.start
        return add(index_var(self.loops[node].var), index(self._starts[node]))

    def _range_of(self, node: Binary) -> range | None:
        used = free_vars(node)
        loops = (loop for loop in self._instance.loops.values() if loop.var in used)
        values = ConstantPoints(loops).values(node)
        if values is not None:
            return range(int(values.min()), int(values.max()) + 1)
        by = integer_value(node.rhs)
        return range(by) if node.op == "floormod" and by is not None and by > 0 else None
