"""Proves that each thread which makes one of some accesses has elements of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import combinations
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
from gossamer_ir.dependence.access_forms import forms_of_accesses
from gossamer_ir.dependence.constant_points import ConstantPoints, TriedAccess, differ_at_points
from gossamer_ir.dependence.different_elements import are_different_elements
from gossamer_ir.dependence.disjointness import without_changing
from gossamer_ir.dependence.independence import are_unshared
from gossamer_ir.nodes import Atomic, Binary, Expr, For, Function, If, Load, Search, Stmt, Store
from gossamer_ir.traversal.buffer_uses import buffers_read
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import bound_vars
from gossamer_ir.traversal.rewrite import map_children
from gossamer_ir.traversal.substitute import resolve
from gossamer_lower.device.stores.access_sites import AccessSite
from gossamer_lower.device.stores.selected_threads import ThreadSelection
from gossamer_support.identity_cache import memoize_by_identity


class OwnElements:
    """Proves of a function with kernels that different threads access different elements. `values` are those
    of variables: of lets, and of loops over the threads of an axis that are the same ones as others.

    >>> from gossamer_ir.core.build import ONE, floordiv
    >>> t = index_var("t")
    >>> for at in (t, floordiv(t, index(2))):
    ...     loop = For("t", ZERO, index(8), (Store("Y", (at,), ONE),), thread="threadIdx.x")
    ...     own = OwnElements(Function("f", (), (loop,)), {})
    ...     own.first_shared([AccessSite(loop.body[0], (loop,))], loops=[loop]) is None
    True
    False
    """

    def __init__(self, function: Function, values: Mapping[str, Expr]) -> None:
        self._function, self._values = function, values
        self._changing = mutable_buffers(function)
        self._selection = ThreadSelection(function, values)

    def first_shared(
        self, sites: Sequence[AccessSite], *, loops: Sequence[For], equal: Sequence[For] = ()
    ) -> For | None:
        """Return the first of some loops around accesses of a buffer of which different iterations are not
        proved to access different elements; None if there is none. The iterations of the loops `equal` are
        the same ones, those of any other loop may differ, too."""
        if not loops:
            return None
        instances = [self._instance(site) for site in sites]
        fixed = {loop.var for loop in equal}
        if self._differ_at_points(instances, [loop.var for loop in loops], fixed):
            return None
        for loop in loops:
            if not self._are_apart(instances, loop.var, fixed) and not (
                len(sites) < 3 and self._selection.is_of_one_thread(loop.var, sites[0], sites[-1])
            ):
                return loop
            fixed.add(loop.var)
        return None

    def are_different(self, sites: Sequence[AccessSite]) -> bool:
        """Return whether accesses of a buffer are to different elements, whatever the threads are."""
        instances = [self._instance(site) for site in sites]
        if any(instance.depends_on_exchanged for instance in instances):
            return False
        names = {name for instance in instances for name in instance.loops}
        bounder = _Bounder({}, names)
        body = tuple(_nest(instance, bounder, set()) for instance in instances)
        function = replace(self._function, body=body, facts=invariant_facts(self._function))
        listed = accesses(body, buffers={sites[0].node.buffer})
        forms = [without_changing(f, self._changing) for f in forms_of_accesses(listed, function)]
        pairs = combinations([form for form in forms if form.is_store], 2)
        return all(are_different_elements(*pair, function) for pair in pairs)

    # Other statements: they access an element for each lane.
    def _instance(self, site: AccessSite) -> _AccessInstance:
        lanes = None if isinstance(site.node, Atomic | Search) else lanes_of_access(site.node)
        lane = LANE
        lane_loop: tuple[For, ...] = ()
        if lanes is not None:
            count = lane_count(lanes)
            # Accesses of different numbers of lanes have loops of their own.
            lane = index_var(f"{LANE.name} of {integer_value(count)}")
            lane_loop = (For(lane.name, ZERO, count, ()),)
        loops = {
            loop.var: self._serial(loop)
            for loop in (*site.loops, *lane_loop)
            if loop.var not in self._values
        }
        indices, conditions = (
            tuple(in_lane(resolve(expr, self._values), lane) for expr in exprs)
            for exprs in (site.indices, site.conditions)
        )
        bound = _bound_inside(site.loops[0]) - self._values.keys() if site.loops else frozenset()
        return _AccessInstance(site.node, indices, conditions, loops, bound - loops.keys())

    def _serial(self, loop: For) -> For:
        """Return a loop without a body and an axis, with bounds in terms of the variables of loops."""
        start, extent = (resolve(bound, self._values) for bound in (loop.start, loop.extent))
        # A size of an array may be a place value of an index; any other number of blocks is bounded.
        is_size = overflow_of(self._function).bound(extent) <= MAX_SIZE
        if is_block_axis(loop.thread) and not is_size:
            extent = index(MAX_GRID_BLOCKS)
        return For(loop.var, start, extent, ())

    def _differ_at_points(
        self, instances: Sequence[_AccessInstance], names: Sequence[str], fixed: Set[str]
    ) -> bool:
        """Return whether all iterations that the indices depend on can be tried, and differ."""
        names_in = ({*instance.loops, *instance.exchanged} for instance in instances)
        varying = set[str]().union(*names_in) - fixed

        def is_equal(expr: Expr) -> bool:
            is_unchanged = buffers_read(expr).isdisjoint(self._changing)
            return is_unchanged and free_vars(expr).isdisjoint(varying)

        tried = []
        for instance in instances:
            used = {*names, *free_vars(*instance.indices, *instance.conditions)}
            points = ConstantPoints(loop for loop in instance.loops.values() if loop.var in used)
            tried.append(TriedAccess(instance.indices, points, instance.conditions))
        return differ_at_points(names, tried, equal=is_equal)

    def _are_apart(self, instances: Sequence[_AccessInstance], name: str, fixed: Set[str]) -> bool:
        """Return whether different iterations of a loop are proved to access different elements, by the tests
        for loops whose iterations run concurrently."""
        loops = {var: loop for instance in instances for var, loop in instance.loops.items()}
        if any(name not in instance.loops for instance in instances) or any(
            instance.depends_on_exchanged for instance in instances
        ):
            return False
        bounder = _Bounder(loops, {name, *fixed})
        nests = tuple(_nest(instance, bounder, {name, *fixed}) for instance in instances)
        first = replace(loops[name], body=nests)
        outer = [loops[var] for var in loops if var in fixed]
        nest: Stmt = first
        for outer_loop in reversed(outer):
            nest = replace(outer_loop, body=(nest,))
        return are_unshared(
            list(accesses(first.body, buffers={instances[0].node.buffer})),
            first,
            outer=outer,
            changing=self._changing,
            # Not the facts of the function: it may write what they are about elsewhere.
            function=replace(self._function, body=(nest,), facts=invariant_facts(self._function)),
        )


@memoize_by_identity
def _bound_inside(loop: For) -> frozenset[str]:
    """Return the variables that a loop over blocks binds: those of all accesses in it."""
    return frozenset(bound_vars((loop,)))


class _AccessInstance(msgspec.Struct, frozen=True):
    """An access of one element, in terms of the variables of the loops around it, one of which may be over
    the lanes of a vector."""

    node: Load | Search | Store | Atomic
    indices: tuple[Expr, ...]
    conditions: tuple[Expr, ...]
    loops: dict[str, For]
    exchanged: Set[str]
    """Other variables that are bound in the kernel, such as the results of shuffles."""

    @property
    def depends_on_exchanged(self) -> bool:
        """True if the element, or how often it is accessed, depends on what threads exchange: each thread has
        another value of it."""
        bounds = (bound for loop in self.loops.values() for bound in (loop.start, loop.extent))
        return not free_vars(*self.indices, *bounds).isdisjoint(self.exchanged)


def _nest(instance: _AccessInstance, bounder: _Bounder, outside: Set[str]) -> Stmt:
    """Return an access in its conditions and loops, but those that are `outside`."""
    indices = tuple(map(bounder.with_loop_vars, instance.indices))
    body: Stmt = Store(instance.node.buffer, indices, ZERO)
    for condition in instance.conditions:
        if free_vars(condition).isdisjoint(instance.exchanged):
            body = If(condition, (body,))
    inner = [loop for loop in instance.loops.values() if loop.var not in outside]
    for loop in reversed((*inner, *bounder.loops.values())):
        body = replace(loop, body=(body,))
    return body


class _Bounder:
    """Replaces what is not a sum or a product, such as a quotient, by the variable of a loop over a range
    that has all its values. It stays if it depends on one of the variables that are `kept`."""

    def __init__(self, around: Mapping[str, For], kept: Set[str]) -> None:
        self._around, self._kept = around, kept
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
        loops = (loop for loop in self._around.values() if loop.var in used)
        values = ConstantPoints(loops).values(node)
        if values is not None:
            return range(int(values.min()), int(values.max()) + 1)
        by = integer_value(node.rhs)
        return range(by) if node.op == "floormod" and by is not None and by > 0 else None
