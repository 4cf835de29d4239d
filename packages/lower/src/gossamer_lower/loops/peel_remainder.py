"""Peels the partial group of an unrolled loop (the remainder), so that whole groups need no conditions.

Splitting a loop leaves the condition `group * c + u < bound` in each iteration. For vector lanes it becomes a
mask. For copies of a body that contains a loop, each copy would be under its own branch, and the lane
reductions of the copies could not be combined (`combine_lane_reductions`). So one condition is tested for
the whole group, and the remainder runs as a serial loop that ends at the bound.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.accesses.linear_form import slack_along
from gossamer_ir.analysis.bounds.overflow import overflow_of
from gossamer_ir.analysis.proofs.program_point import is_invariant
from gossamer_ir.arith.affine import ONE_FORM, Affine, expr_of
from gossamer_ir.arith.inequalities import slack_of
from gossamer_ir.arith.simplify import simplify_body
from gossamer_ir.core.build import ZERO, index, index_var, integer_value
from gossamer_ir.core.conditions import TRUE, conjuncts, short_circuit_conjuncts
from gossamer_ir.core.statement_kinds import ALLOCATING_STMTS, CHECKING_STMTS
from gossamer_ir.nodes import Compare, Expr, For, Function, If, Load, Module, Node, Stmt, Store
from gossamer_ir.transform.clone_with_fresh_names import with_fresh_names
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.buffer_uses import buffers_named
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.rewrite import map_children
from gossamer_ir.traversal.statement_queries import defines_only, names_after
from gossamer_ir.traversal.substitute import substitute
from gossamer_ir.traversal.walk import collect, stmts
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statements.rebuild import with_bodies, with_body


@lowering_pass(
    takes=("loop",),
    without=("blocks",),
    before={
        "vectorize_loops": "vectors would turn the bound that it tests into masks",
        "unroll_loops": "it tests the bound of a loop that is not unrolled yet",
    },
)
def peel_remainder(module: Module) -> Module:
    """Test the bound of an unrolled loop around loops once for the group; the remainder runs serially.

    It runs before vectorization. All statements of the body under the same bound move with the loop, and so
    do buffers that only they access. A bound that depends on unrolled loops only becomes a constant when
    these are unrolled, so it stays.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program('''
    ... for i in T.serial((n + 3) // 4):
    ...     for u in T.unroll(4):
    ...         if i * 4 + u < n:
    ...             for j in T.serial(P[i * 4 + u]):
    ...                 Y[i * 4 + u] = Y[i * 4 + u] + X[j]
    ... ''')
    >>> print(body_text(peel_remainder(before)))
    for i in T.serial((n + 3) // 4):
        if i * 4 + 3 < n:
            for u in T.unroll(4):
                for j in T.serial(P[i * 4 + u]):
                    Y[i * 4 + u] = Y[i * 4 + u] + X[j]
        else:
            for u_1 in T.serial(n - i * 4):
                for j_1 in T.serial(P[i * 4 + u_1]):
                    Y[i * 4 + u_1] = Y[i * 4 + u_1] + X[j_1]
    """
    return map_functions(module, _peel_function)


def _peel_function(function: Function) -> Function:
    if not any(isinstance(stmt, For) and stmt.kind == "unrolled" for stmt in stmts(function.body)):
        return function
    return with_body(function, _RemainderPeeler(function).body(function.body, frozenset()))


class _UnrolledGroup(msgspec.Struct, frozen=True):
    """Iterations 0, ..., count - 1, each executed only if its number is at most `slack`."""

    slack: Affine
    count: int
    whole: Expr

    @property
    def remainder_count(self) -> Expr:
        """The number of iterations of the remainder."""
        return expr_of(self.slack + ONE_FORM)

    def bounds(self, condition: Node, counts: dict[str, int]) -> bool:
        """Return whether a condition is this bound for the variable of a loop with an extent in `counts`."""
        slack = slack_of(condition) if isinstance(condition, Compare) else None
        if slack is None:
            return False
        rest = self.slack - slack
        # `self.slack` has the bound without the variable:
        # the rest must be the variable of one loop alone.
        if rest.constant or len(rest.terms) != 1:
            return False
        ((atom, factor),) = rest.terms.items()
        name = next(iter(free_vars(atom)), None)
        if name is None or atom != index_var(name) or factor != 1:
            return False
        return counts.get(name, self.count + 1) <= self.count


class _RemainderPeeler:
    """Finds groups in one function, and peels their remainders."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._registers = _local_buffers(function.body)
        self._namer = namer_of(function)
        self._overflow = overflow_of(function)

    def body(self, body: tuple[Stmt, ...], unrolled: frozenset[str]) -> tuple[Stmt, ...]:
        """Return the body with remainders peeled; `unrolled` are the variables of unrolled loops around."""
        for stmt in body:
            group = self._group_of(stmt, unrolled)
            peeled = None if group is None else self._peel_group(body, group)
            if peeled is not None:
                before, both, after = peeled
                others = tuple(self._stmt(stmt, unrolled) for stmt in before)
                return (*others, both, *self.body(after, unrolled))
        return tuple(self._stmt(stmt, unrolled) for stmt in body)

    def _stmt(self, stmt: Stmt, unrolled: frozenset[str]) -> Stmt:
        if isinstance(stmt, For) and stmt.kind == "unrolled":
            unrolled |= {stmt.var}
        return with_bodies(stmt, lambda body: self.body(body, unrolled))

    def _group_of(self, stmt: Stmt, unrolled: frozenset[str]) -> _UnrolledGroup | None:
        """Return the group of an unrolled loop; None if there is none. Each iteration must evaluate the
        bound unconditionally, and still depend on it once the enclosing loops are unrolled."""
        # With another start, the iterations of the group would not be 0, ..., count - 1.
        if not isinstance(stmt, For) or stmt.kind != "unrolled" or stmt.start != ZERO:
            return None
        # Straight-line copies under their own conditions are cheap:
        # they become masks or short branches.
        if not any(isinstance(inner, For) for inner in stmts(stmt.body)):
            return None
        count = integer_value(stmt.extent)
        for inner in stmt.body:
            # A guard before the bound runs even in iterations past the bound, and may stop the
            # kernel there.
            if isinstance(inner, CHECKING_STMTS) or count is None or count < 2:
                return None
            if isinstance(inner, If):
                condition = next(conjuncts(inner.condition))
                group = _group(condition, stmt.var, count)
                # Otherwise unrolling decides the condition at compile time.
                if group is not None and free_vars(condition) - {stmt.var} - unrolled:
                    return group if self._is_as_computed(group) else None
        return None

    def _is_as_computed(self, group: _UnrolledGroup) -> bool:
        """Return whether neither the condition of the whole group nor the length of the remainder can
        overflow: only then are they equivalent to the conditions of the iterations."""
        return all(map(self._overflow.is_exact, (group.whole, group.remainder_count)))

    def _peel_group(self, body: tuple[Stmt, ...], group: _UnrolledGroup) -> _Peeled | None:
        """Return the statements before the group, the group in two versions, and the statements after it.

        None if the condition cannot be evaluated before the group, or if later statements use names that
        the group binds.
        """
        bounded = [
            number
            for number, stmt in enumerate(body)
            if _without_bound(stmt, group, {}) is not stmt
        ]
        first, last = bounded[0], bounded[-1] + 1
        before, run, after = body[:first], body[first:last], body[last:]
        # After the `If`, a name that one branch binds no longer exists.
        if _names_bound_after(run) & _used_names(after):
            return None
        # The condition is now evaluated before the run, each copy evaluated it for itself.
        if not is_invariant(group.whole, run, self._function):
            return None
        outside = _used_names((*before, *after))
        # Buffers that only the run uses move into both versions,
        # so that each can keep them in registers.
        private = [
            stmt
            for stmt in before
            if isinstance(stmt, ALLOCATING_STMTS) and outside.isdisjoint(names_after(stmt))
        ]
        every = (*private, *run)
        main = simplify_body(tuple(_without_bound(stmt, group, {}) for stmt in every))
        # Names are unique in a function, so the second version needs its own.
        remainder = simplify_body(
            tuple(
                _roll_loops(stmt, group, self._registers)
                for stmt in with_fresh_names(every, self._namer)
            )
        )
        kept = tuple(stmt for stmt in before if stmt not in private)
        return kept, If(group.whole, main, remainder), after


def _group(condition: Expr, var_name: str, count: int) -> _UnrolledGroup | None:
    """Return the group of `count` iterations if a condition is equivalent to `base + var < bound`."""
    parts = slack_along(condition, var_name)
    if parts is None or parts[0] != Affine({}, -1):
        return None
    return _UnrolledGroup(parts[1], count, substitute(condition, {var_name: index(count - 1)}))


# --- a body with such a loop


_Peeled: TypeAlias = tuple[tuple[Stmt, ...], If, tuple[Stmt, ...]]


def _without_bound(node: Any, group: _UnrolledGroup, counts: dict[str, int]) -> Any:
    """Return a statement or expression with the bound resolved to true; `counts` are the extents of the
    enclosing loops that start at 0."""
    if group.bounds(node, counts):
        return TRUE
    count = integer_value(node.extent) if isinstance(node, For) else None
    if count is not None and node.start == ZERO:
        counts = {**counts, node.var: count}
    return map_children(node, lambda child: _without_bound(child, group, counts))


def _roll_loops(node: Node, group: _UnrolledGroup, registers: frozenset[str]) -> Any:
    """Return a statement with its outermost unrolled loops made serial: the remainder runs at most once, and
    each copy would be under a branch.

    A loop that selects elements of a local buffer from outside of the group stays unrolled: the elements are
    in registers, which no variable can select, and in memory they would be for the whole groups, too.
    """
    if not isinstance(node, For) or node.kind != "unrolled":
        return map_children(node, lambda child: _roll_loops(child, group, registers))
    if _selects_element(node, registers):
        return node
    return _loop_to_bound(replace(node, kind="serial"), group)


def _selects_element(loop: For, buffers: frozenset[str]) -> bool:
    """Return whether the variable of a loop selects elements of one of the buffers."""
    return any(
        access.buffer in buffers and loop.var in free_vars(*access.indices)
        for access in collect((Load, Store), loop)
    )


def _local_buffers(body: tuple[Stmt, ...]) -> frozenset[str]:
    """Return the local buffers that statements allocate, at any depth."""
    return frozenset(buffer.name for buffer in allocations(stmts(body)) if buffer.scope == "local")


def _loop_to_bound(loop: For, group: _UnrolledGroup) -> For:
    """Return a loop over the group that ends at the bound, if it has no effect beyond the bound."""
    if loop.start != ZERO or integer_value(loop.extent) != group.count:
        return loop
    counts = {loop.var: group.count}
    if not all(_is_under_bound(stmt, group, counts) for stmt in loop.body):
        return loop
    body = tuple(_without_bound(stmt, group, counts) for stmt in loop.body)
    return replace(loop, extent=group.remainder_count, body=body)


def _is_under_bound(stmt: Stmt, group: _UnrolledGroup, counts: dict[str, int]) -> bool:
    """Return whether a statement has no effect unless the bound holds."""
    if not isinstance(stmt, If) or stmt.else_body:
        return defines_only(stmt)
    # The part that is evaluated first decides whether the others are evaluated.
    return group.bounds(next(short_circuit_conjuncts(stmt.condition)), counts)


def _names_bound_after(run: tuple[Stmt, ...]) -> set[str]:
    """Return the names that statements bind for those after them."""
    return {name for stmt in run for name in names_after(stmt)}


def _used_names(body: tuple[Stmt, ...]) -> frozenset[str]:
    """Return the names of the variables and buffers that statements use."""
    return buffers_named(*body) | free_vars(*body)
