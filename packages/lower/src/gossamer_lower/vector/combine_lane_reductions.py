"""Combines lane reductions into consecutive elements to one transpose-reduce and one vector store.

Sixteen separate horizontal sums cost several times as much as a combined one (`TransposeReduce`). They occur
in unrolled code with other statements in between; the combined reduction stands where the last of them was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.invariants import is_constant
from gossamer_ir.analysis.statements.reductions import identity, match_reduction
from gossamer_ir.arith.affine import distance
from gossamer_ir.core.build import ONE
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of, has_lanes
from gossamer_ir.nodes import (
    Binary,
    Const,
    Expr,
    Function,
    LaneReduce,
    Lanes,
    Load,
    Module,
    Node,
    Ramp,
    Stmt,
    Store,
    TransposeReduce,
)
from gossamer_ir.traversal.access_types import ELEMENT_NODES, INDEXED_NODES
from gossamer_ir.traversal.buffer_definitions import allocations, handles_of, without_allocations
from gossamer_ir.traversal.buffer_uses import buffers_named, buffers_read, buffers_written
from gossamer_ir.traversal.walk import collect
from gossamer_ir.verify.expressions.vector_expressions import MAX_VALUES
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statements.rebuild import map_stmts, with_bodies, with_body

# With 16 lanes, two reductions take 8 shuffles combined or apart; four take 10 instead of 16.
MIN_VALUES = 4
"""Fewer reductions are not combined."""


@lowering_pass(
    takes=("loop",),
    acts_on="lane reductions",
    without=("blocks",),
    after={"unroll_loops": "the stores to adjacent elements are those of the copies"},
)
def combine_lane_reductions(module: Module) -> Module:
    """Combine lane reductions that are stored to consecutive elements, in straight-line code.

    It runs after unrolling, whose copies make the consecutive elements. A group has 4, 8, ... reductions;
    no statement in between may access the elements. The stores may go through a local element that starts
    at the identity of the reducer. Reductions of scalable vectors are not combined, only stored at once.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program('''
    ... Y[n] = T.lane_reduce("add", X[T.ramp(0, 1, 2)])
    ... Y[n + 1] = T.lane_reduce("add", X[T.ramp(2, 1, 2)])
    ... Y[n + 2] = T.lane_reduce("add", X[T.ramp(4, 1, 2)])
    ... Y[n + 3] = T.lane_reduce("add", X[T.ramp(6, 1, 2)])
    ... ''')
    >>> print(body_text(combine_lane_reductions(before)))  # doctest: +NORMALIZE_WHITESPACE
    Y[T.ramp(n, 1, 4)] = T.transpose_reduce("add", X[T.ramp(0, 1, 2)], X[T.ramp(2, 1, 2)],
                                                   X[T.ramp(4, 1, 2)], X[T.ramp(6, 1, 2)])
    """
    return map_functions(module, _combine_function)


def _combine_function(function: Function) -> Function:
    return with_body(function, _LaneReductionCombiner(function).body(function.body))


class _LaneSum(msgspec.Struct, frozen=True):
    """A store of a lane reduction, and its index in the body."""

    at: int
    store: Store
    value: LaneReduce


class _LaneReductionCombiner:
    """Combines reductions in one function."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._handles = handles_of(function)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        # Inner bodies first; groups never extend across the border of a body.
        body = map_stmts(body, lambda stmt: (with_bodies(stmt, self.body),))
        # Most bodies have no group, and the rewrites below are quadratic in the length of a body.
        sums = [stmt for stmt in body if _ends_in_sum(stmt)]
        are_scalable = any(lane.scalable for lane in collect(Lanes, *sums))
        if len(sums) < MIN_VALUES and not are_scalable:
            return body
        direct = self._forward_stores(self._without_starts(list(body)))
        combined = self._combine_groups(direct)
        # Those of scalable vectors stay apart, but need not be added to the identity.
        return body if combined is direct and not are_scalable else _without_unused(combined)

    # --- groups

    def _combine_groups(self, body: list[Stmt]) -> list[Stmt]:
        """Return the body with each group as one store; the same object if there is none."""
        placed: dict[int, tuple[Stmt, ...]] = {}
        for run in _consecutive_runs(self._sums(body)):
            for group in _power_of_two_groups(run):
                if self._may_move(body, group):
                    # At the last member all values are known. The earlier ones are delayed, which
                    # `_may_move` permits.
                    placed |= {member.at: () for member in group}
                    placed[group[-1].at] = (_combined_store(group),)
        if not placed:
            return body
        return [new for number, stmt in enumerate(body) for new in placed.get(number, (stmt,))]

    def _may_move(self, body: list[Stmt], group: Sequence[_LaneSum]) -> bool:
        """Return whether all stores of a group can be moved to the last of them."""
        members = {member.at for member in group}
        stored = self._memory_of(group[0].store.buffer)
        later: set[str] = set()
        # Backwards, so that `later` is the memory that is written between a member and the place it moves to.
        for at in range(group[-1].at, group[0].at - 1, -1):
            read = set(self._memory_read((body[at],)))
            # A statement between reads the elements, or a member reads what is overwritten before
            # the last member.
            if stored in read or (at in members and not read.isdisjoint(later)):
                return False
            written = set(self._memory_written((body[at],)))
            # Another store to the buffer may be to one of the elements, and the order of the two
            # would change.
            if at not in members and stored in written:
                return False
            later |= written - ({stored} if at in members else set())
        return True

    # --- rewrites of a body before groups are formed

    def _without_starts(self, body: list[Stmt]) -> list[Stmt]:
        """Return the body with `Z[i] = identity` and a later `Z[i] = Z[i] op lanes` merged to one store."""
        dropped: set[int] = set()
        for number, stmt in enumerate(body):
            if not isinstance(stmt, Store) or not self._is_start(stmt):
                continue
            after = self._next_access(body, number, stmt)
            lanes = None if after is None else _lane_reduction_from(stmt, body[after])
            if after is not None and lanes is not None:
                dropped.add(number)
                body[after] = Store(stmt.buffer, stmt.indices, lanes)
        return [stmt for number, stmt in enumerate(body) if number not in dropped]

    def _forward_stores(self, body: list[Stmt]) -> list[Stmt]:
        """Return the body with store forwarding: elements of local buffers that only carry a lane reduction
        to another store are removed."""
        dropped: set[int] = set()
        local = {buffer.name for buffer in allocations(body)}
        for number, stmt in enumerate(body):
            # Only scratch of this body: the stored value of any other buffer is visible after it.
            if not isinstance(stmt, Store) or stmt.buffer not in local or not self._is_sum(stmt):
                continue
            after = self._next_access(body, number, stmt)
            user = None if after is None else body[after]
            if after is None or not isinstance(user, Store) or not self._forwards(user, stmt):
                continue
            between = body[number + 1 : after]
            is_last = self._next_access(body, after, stmt) is None
            # The reduction is now evaluated at the user, so nothing in between may change its
            # operands, and no other statement may load the element that is no longer stored.
            if is_last and set(self._memory_read((stmt,))).isdisjoint(
                self._memory_written(between)
            ):
                dropped.add(number)
                body[after] = replace(user, value=stmt.value)
        return [stmt for number, stmt in enumerate(body) if number not in dropped]

    # --- the shapes of stores

    def _is_scalar(self, store: Store) -> bool:
        """Return whether one element is stored, whose index does not read mutable memory."""
        is_scalar = not has_lanes(store.value)
        is_fixed = is_constant(*store.indices, function=self._function)
        return store.predicate is None and is_scalar and is_fixed

    def _is_start(self, store: Store) -> bool:
        return isinstance(store.value, Const) and self._is_scalar(store)

    def _is_sum(self, store: Store) -> bool:
        if not isinstance(store.value, LaneReduce) or not self._is_scalar(store):
            return False
        return bool(store.indices)

    def _forwards(self, user: Store, stored: Store) -> bool:
        """Return whether the value of a store is the element that the other one stored."""
        value = user.value
        return (
            isinstance(value, Load)
            and self._is_scalar(user)
            and (value.buffer, value.indices, value.predicate)
            == (stored.buffer, stored.indices, None)
        )

    def _sums(self, body: list[Stmt]) -> Iterator[_LaneSum]:
        for number, stmt in enumerate(body):
            if (
                isinstance(stmt, Store)
                and self._is_sum(stmt)
                and isinstance(stmt.value, LaneReduce)
                and _may_combine(stmt.value)
            ):
                yield _LaneSum(number, stmt, stmt.value)

    # --- memory

    def _next_access(self, body: list[Stmt], at: int, store: Store) -> int | None:
        """Return the index of the next statement that may access the stored element; None if none does."""
        for after in range(at + 1, len(body)):
            accesses = collect(INDEXED_NODES, body[after])
            if any(self._may_alias(node, store) for node in accesses):
                return after
        return None

    def _may_alias(self, node: Any, store: Store) -> bool:
        if self._memory_of(node.buffer) != self._memory_of(store.buffer):
            return False
        # A search reads a range of elements; another buffer in the same memory has another shape.
        if not isinstance(node, ELEMENT_NODES) or node.buffer != store.buffer:
            return True
        return not any(
            _are_different(one, other)
            for one, other in zip(node.indices, store.indices, strict=True)
        )

    def _memory_of(self, buffer_name: str) -> str:
        """Return the memory of a buffer, named by its handle: several buffers may share one array."""
        return self._handles.get(buffer_name, buffer_name)

    def _memory_read(self, nodes: Iterable[Node]) -> Iterator[str]:
        return map(self._memory_of, buffers_read(*nodes))

    def _memory_written(self, body: Iterable[Stmt]) -> Iterator[str]:
        return map(self._memory_of, buffers_written(body))


def _are_different(one: Expr, other: Expr) -> bool:
    """Return whether two indices are always different."""
    if has_lanes(one) or has_lanes(other):
        return False
    return distance(one, other) not in (None, 0)


# --- the shapes of statements


def _ends_in_sum(stmt: Stmt) -> bool:
    """Return whether a statement stores a lane reduction, possibly combined with another value."""
    if not isinstance(stmt, Store):
        return False
    parts = (stmt.value.lhs, stmt.value.rhs) if isinstance(stmt.value, Binary) else (stmt.value,)
    return any(isinstance(part, LaneReduce) for part in parts)


def _may_combine(value: LaneReduce) -> bool:
    """Return whether a reduction may be one of a `TransposeReduce`. Halving vectors saves shuffles if their
    number of lanes is a known power of two; scalable vectors would be reduced one by one in any case."""
    dtype = DType.parse(dtype_of(value.value))
    return not dtype.scalable and dtype.lanes.bit_count() == 1


def _lane_reduction_from(start: Store, stmt: Stmt) -> LaneReduce | None:
    """Return the lane reduction that is combined with an element, if the element was the identity of the
    reducer before."""
    if not isinstance(stmt, Store) or stmt.predicate is not None or stmt.indices != start.indices:
        return None
    reduction, value = match_reduction(stmt), start.value
    if (
        reduction is None
        or not isinstance(reduction.value, LaneReduce)
        or not isinstance(value, Const)
    ):
        return None
    is_one = reduction.op == reduction.value.op and value == identity(reduction.op, value.dtype)
    return reduction.value if is_one else None


def _consecutive_runs(sums: Iterable[_LaneSum]) -> Iterator[list[_LaneSum]]:
    """Yield runs of stores to consecutive elements."""
    run: list[_LaneSum] = []
    for current in sums:
        if run and not _is_consecutive(current, run[-1]):
            yield run
            run = []
        run.append(current)
    if run:
        yield run


def _is_consecutive(after: _LaneSum, before: _LaneSum) -> bool:
    (*outer, index), (*old_outer, old_index) = after.store.indices, before.store.indices
    return (
        (after.store.buffer, after.value.op, outer)
        == (before.store.buffer, before.value.op, old_outer)
        and dtype_of(after.value.value) == dtype_of(before.value.value)
        and distance(index, old_index) == 1
    )


def _power_of_two_groups(run: list[_LaneSum]) -> Iterator[list[_LaneSum]]:
    """Yield parts of a run, each with a power of two of stores."""
    while len(run) >= MIN_VALUES:
        # The largest power of two first: 7 sums become a group of 4, and 3 that stay single.
        count = min(MAX_VALUES, 1 << (len(run).bit_length() - 1))
        yield run[:count]
        run = run[count:]


def _combined_store(group: Sequence[_LaneSum]) -> Store:
    first = group[0]
    *outer, index = first.store.indices
    values = tuple(member.value.value for member in group)
    lanes = Ramp(index, ONE, Lanes(len(group)))
    return Store(first.store.buffer, (*outer, lanes), TransposeReduce(first.value.op, values))


def _without_unused(body: list[Stmt]) -> tuple[Stmt, ...]:
    """Return the body without allocations of buffers that are no longer used."""
    unused = {buffer.name for buffer in allocations(body)} - buffers_named(*body)
    return without_allocations(tuple(body), unused)
