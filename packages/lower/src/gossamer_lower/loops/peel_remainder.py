"""The last, partial group of an unrolled loop runs by itself, so that whole groups need no conditions.

A loop that was split leaves `group * c + u < bound` in each iteration. Lanes of a vector make a mask
of it; copies of a body with a loop would each be a branch apart, and their results could not be
combined. One condition for the whole group decides instead, and what is left runs as a serial loop,
which ends at the bound.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gossamer_ir.analysis.linear_form import along
from gossamer_ir.analysis.overflow import magnitudes_of
from gossamer_ir.analysis.program_point import is_invariant
from gossamer_ir.arith.affine import UNIT, Affine, combine, expr_of
from gossamer_ir.arith.inequalities import slack_of
from gossamer_ir.arith.simplify import FALSE, TRUE, simplify_body
from gossamer_ir.core import build
from gossamer_ir.nodes import (
    Allocate,
    Compare,
    Expr,
    For,
    Function,
    Guard,
    If,
    IfThenElse,
    Let,
    Module,
    Node,
    Stmt,
)  # fmt: skip
from gossamer_ir.traversal.effects import binds, buffers_named
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.walk import free_vars, map_children, statements, substitute
from gossamer_lower.loops.clone_with_fresh_names import renamed
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statement_utils import with_bodies, with_body


@lowering_pass(takes=("loop",), without=("blocks",))
def peel_remainder(module: Module) -> Module:
    """Gives unrolled loops around loops of which each iteration is under a bound a form without it.

    Takes a loop-stage module without blocks, before vectorisation. Everything in the same body that
    is under the same bound goes with the loop, and so do buffers that only this touches. A bound that
    only depends on unrolled loops is none when those are: it stays where it is.

    >>> from gossamer_lower.examples import body_text, program
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
    if not any(
        isinstance(stmt, For) and stmt.kind == "unrolled" for stmt in statements(function.body)
    ):
        return function
    return with_body(function, _Peeling(function).body(function.body, frozenset()))


class _Group(msgspec.Struct, frozen=True):
    """Iterations 0, ..., count - 1 of which each runs only where its number is at most `slack`."""

    slack: Affine
    count: int
    whole: Expr

    @property
    def left(self) -> Expr:
        """How many iterations run, if less than all do."""
        return expr_of(combine(self.slack, UNIT, 1))

    def bounds(self, condition: Node, counts: dict[str, int]) -> bool:
        """Whether a condition says just that about the variable of a loop, given each one's extent."""
        slack = slack_of(condition) if isinstance(condition, Compare) else None
        if slack is None:
            return False
        rest = combine(self.slack, slack, -1)
        if rest.constant or len(rest.terms) != 1:
            return False
        ((atom, factor),) = rest.terms.items()
        name = next(iter(free_vars(atom)), "")
        is_var = atom == build.index_var(name)
        return is_var and factor == 1 and counts.get(name, self.count + 1) <= self.count


class _Peeling:
    """Finds groups; knows how large integers get."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._namer = namer_of(function)
        self._magnitudes = magnitudes_of(function)

    def body(self, body: tuple[Stmt, ...], unrolled: frozenset[str]) -> tuple[Stmt, ...]:
        """`unrolled` are the variables of the unrolled loops around."""
        for stmt in body:
            group = self._group_of(stmt, unrolled)
            peeled = None if group is None else self._peeled(body, group)
            if peeled is not None:
                before, both, after = peeled
                others = tuple(self._statement(stmt, unrolled) for stmt in before)
                return (*others, both, *self.body(after, unrolled))
        return tuple(self._statement(stmt, unrolled) for stmt in body)

    def _statement(self, stmt: Stmt, unrolled: frozenset[str]) -> Stmt:
        if isinstance(stmt, For) and stmt.kind == "unrolled":
            unrolled |= {stmt.var}
        return with_bodies(stmt, lambda body: self.body(body, unrolled))

    def _group_of(self, stmt: Stmt, unrolled: frozenset[str]) -> _Group | None:
        """The group that an unrolled loop runs over, if each iteration evaluates its bound in any case,
        and copies of the unrolled loops around do so still."""
        if not isinstance(stmt, For) or stmt.kind != "unrolled" or stmt.start != build.ZERO:
            return None
        if not any(isinstance(inner, For) for inner in statements(stmt.body)):
            return None
        count = build.integer_value(stmt.extent)
        for inner in stmt.body:
            if isinstance(inner, Guard) or count is None or count < 2:
                return None
            if isinstance(inner, If):
                condition = next(build.conjuncts(inner.condition))
                group = _group(condition, stmt.var, count)
                if group is not None and free_vars(condition) - {stmt.var} - unrolled:
                    return group if self._is_as_computed(group) else None
        return None

    def _is_as_computed(self, group: _Group) -> bool:
        """Whether the condition of the whole group implies those of its parts, and what is left of the
        group is what the conditions say: none of them may wrap."""
        return all(map(self._magnitudes.is_exact, (group.whole, group.left)))

    def _peeled(self, body: tuple[Stmt, ...], group: _Group) -> _Peeled | None:
        """What stands before, all that is under the bound in two forms, and what stands behind; None
        where the condition cannot be asked before, or others use what is bound between."""
        bounded = [
            at for at, stmt in enumerate(body) if _without_bound(stmt, group, {}) is not stmt
        ]
        first, last = bounded[0], bounded[-1] + 1
        before, run, after = body[:first], body[first:last], body[last:]
        if _bound_names(run) & _used_names(after):
            return None
        if not is_invariant(group.whole, run, self._function):
            return None
        outside = _used_names((*before, *after))
        private = [
            stmt
            for stmt in before
            if isinstance(stmt, Allocate) and stmt.buffer.name not in outside
        ]
        every = (*private, *run)
        main = simplify_body(tuple(_without_bound(stmt, group, {}) for stmt in every))
        rest = simplify_body(tuple(_rolled(stmt, group) for stmt in renamed(every, self._namer)))
        kept = tuple(stmt for stmt in before if stmt not in private)
        return kept, If(group.whole, main, rest), after


def _group(condition: Expr, var: str, count: int) -> _Group | None:
    """The group of so many iterations, where a condition is `base + var < bound`, or says so."""
    slack = slack_of(condition)
    parts = None if slack is None else along(slack, var)
    if parts is None or parts[0] != Affine({}, -1):
        return None
    return _Group(parts[1], count, substitute(condition, {var: build.index(count - 1)}))


# --- a body with such a loop


_Peeled = tuple[tuple[Stmt, ...], If, tuple[Stmt, ...]]


def _without_bound(node: Any, group: _Group, counts: dict[str, int]) -> Any:
    """A statement or expression where the bound holds; `counts` are the extents of the loops around
    that start at 0."""
    if group.bounds(node, counts):
        return TRUE
    count = build.integer_value(node.extent) if isinstance(node, For) else None
    if count is not None and node.start == build.ZERO:
        counts = {**counts, node.var: count}
    return map_children(node, lambda child: _without_bound(child, group, counts))


def _rolled(node: Any, group: _Group) -> Any:
    """A statement whose outermost unrolled loops are serial: the rest of a group runs once, and
    copies of it would all be branches."""
    if isinstance(node, For) and node.kind == "unrolled":
        return _up_to_bound(msgspec.structs.replace(node, kind="serial"), group)
    return map_children(node, lambda child: _rolled(child, group))


def _up_to_bound(loop: For, group: _Group) -> For:
    """A loop over what is left of the group, where it goes through the group and does nothing beyond
    the bound."""
    if loop.start != build.ZERO or build.integer_value(loop.extent) != group.count:
        return loop
    counts = {loop.var: group.count}
    if not all(_is_under_bound(stmt, group, counts) for stmt in loop.body):
        return loop
    body = tuple(_without_bound(stmt, group, counts) for stmt in loop.body)
    return msgspec.structs.replace(loop, extent=group.left, body=body)


def _is_under_bound(stmt: Stmt, group: _Group, counts: dict[str, int]) -> bool:
    """Whether a statement has no effect where the bound does not hold."""
    if not isinstance(stmt, If) or stmt.else_body:
        return isinstance(stmt, (Allocate, Let))
    first = next(build.conjuncts(stmt.condition))
    while isinstance(first, IfThenElse) and first.if_false == FALSE:
        first = next(build.conjuncts(first.condition))
    return group.bounds(first, counts)


def _bound_names(run: tuple[Stmt, ...]) -> set[str]:
    """What statements bind for those after them."""
    return {name for stmt in run if isinstance(stmt, (Allocate, Let)) for name in binds(stmt)}


def _used_names(body: tuple[Stmt, ...]) -> frozenset[str]:
    """The variables and buffers that statements use."""
    return buffers_named(*body) | free_vars(*body)
