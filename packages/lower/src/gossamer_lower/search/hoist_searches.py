"""Hoists searches: each becomes the value of a let, as far outside as its operands are bound.

Equal searches share a let. A search whose operands only compute with variables is speculated: it runs even
if its result is not used, in a window clamped to the buffer. A search whose operands read memory must not be
speculated: it stays before the statement that needs it, under the same conditions. It leaves a loop in which
it is invariant and with which each iteration begins, under the condition that the loop has an iteration.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.invariants import buffers_written_in, changing_buffers, is_constant
from gossamer_ir.arith.affine import distance
from gossamer_ir.core.build import ZERO, index_var, integer_value
from gossamer_ir.core.conditions import short_circuit_and, short_circuit_conjuncts
from gossamer_ir.core.expression_kinds import EXPR_KINDS
from gossamer_ir.core.operations import DIVISIONS
from gossamer_ir.core.statement_kinds import is_stmt
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Binary,
    Buffer,
    Call,
    Compare,
    Const,
    Expr,
    For,
    Function,
    IfThenElse,
    Let,
    Module,
    Node,
    Search,
    Stmt,
    Unary,
    Var,
)
from gossamer_ir.traversal.buffer_uses import buffers_read
from gossamer_ir.traversal.fields import has_bodies
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import bound_vars
from gossamer_ir.traversal.node_index import types_in
from gossamer_ir.traversal.rewrite import map_children
from gossamer_ir.traversal.statement_queries import vars_bound, while_body
from gossamer_ir.traversal.walk import contains, walk
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statements.point_visitor import PointVisitor
from gossamer_lower.statements.rebuild import with_bodies


@lowering_pass(
    takes=("loop",),
    acts_on="searches",
    without=("blocks",),
    after={
        "vectorize_loops": "the let of a search before a vectorized loop hides the loop",
        "unroll_loops": "the let of a search among stores hides their common subexpressions",
        "combine_lane_reductions": "the let of a search among stores hides that they are adjacent",
    },
)
def hoist_searches(module: Module) -> Module:
    """Make each search the value of a let, as far outside as its operands are bound.

    It runs after vectorization and unrolling. Raises `UnsupportedError`
    (`lower.hoist_searches.depends_on_loop`) if a weight, or the condition of a while loop, contains a search
    that depends on the loop.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program('''
    ... for i in T.serial(n):
    ...     for k in T.serial(n):
    ...         Y[k] = Y[k] + X[T.search("lower", P, begin=0, end=n, value=i)]
    ... ''')
    >>> print(body_text(hoist_searches(before)))
    for i in T.serial(n):
        found: T.int64 = T.search("lower", P, begin=0, end=n, value=i)
        for k in T.serial(n):
            Y[k] = Y[k] + X[found]
    """
    return map_functions(module, _hoist_function)


def _hoist_function(function: Function) -> Function:
    if Search not in types_in(function):
        return function
    hoister = _SearchHoister(function)
    body = hoister.body(function.body)
    placed = _with_lets_placed(
        body, lets=hoister.lets, unbound=frozenset(bound_vars(body)) | hoister.lets.keys()
    )
    return replace(function, body=placed)


class _EarlierSearch(msgspec.Struct, frozen=True):
    """A search that was made under some conditions, the buffers that both read, and the let of its result.
    It is known until a statement writes to one of these buffers."""

    search: Search
    conditions: frozenset[Expr]
    reads: frozenset[str]
    let: Let


class _SearchHoister(PointVisitor):
    """Replaces each search by a variable; `lets` are those that may be placed anywhere."""

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.lets: dict[str, Let] = {}
        self._vars: dict[Search, Var] = {}
        self._replaced: dict[str, Var] = {}
        self._here: list[Let] = []
        self._local: set[str] = set()
        self._known: list[_EarlierSearch] = []
        self._sizes = {
            buffer.name: buffer.shape[0]
            for buffer in function.buffers
            if isinstance(buffer, Buffer) and len(buffer.shape) == 1
        }

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        # Searches that were made in a branch are not known after it.
        outer = self._known.copy()
        result = super().body(body)
        self._known = outer
        return result

    def move_past(self, stmt: Stmt, new: tuple[Stmt, ...]) -> None:
        self._forget_changed_by(new)
        # A condition is recorded as it is compared, with variables in place of its searches.
        for last in new[-1:]:
            super().move_past(last, new)

    def _forget_changed_by(self, stmts: tuple[Stmt, ...]) -> None:
        """Forget the earlier searches whose results statements may change."""
        if self._known:
            written = buffers_written_in(stmts, self.function)
            self._known = [hoisted for hoisted in self._known if hoisted.reads.isdisjoint(written)]

    def stmt(self, stmt: Stmt) -> tuple[Stmt, ...]:
        """Return the statement, after the lets that must stand directly before it."""
        if has_bodies(type(stmt)):  # a loop may evaluate its own expressions after its body, too
            self._forget_changed_by((stmt,))
        outer, self._here = self._here, []
        new = self._with_results(stmt)
        lets, self._here = self._here, outer
        if new is None:
            return tuple(lets)
        # A let before the loop would be evaluated once, the condition in each iteration.
        if lets and while_body(stmt) is not None:
            raise _unsupported_error("The condition of a while loop")
        # Load balancing evaluates the weight outside of the loop, where no let of the loop exists.
        if isinstance(stmt, For) and stmt.weight is not None and contains(Search, stmt.weight):
            raise _unsupported_error(f"The weight of the loop '{stmt.var}'")
        new = self.inside(new)
        if isinstance(new, For):
            leaving, new = self._hoist_out_of(new)
            lets += leaving
        return (*lets, new)

    # Other statements: stay, with variables in place of the searches in them.
    def _with_results(self, stmt: Stmt) -> Stmt | None:
        """Return the statement with the searches of its expressions replaced; None if it is a let whose
        variable is replaced by that of another one."""
        match stmt:
            case Let(value=Search() as search):
                self._replaced[stmt.var.name] = self._node(search, None)
                return None
            case Let(value=IfThenElse(if_true=Search() as search, if_false=Const()) as lazy):
                return self._conditional_let(stmt, lazy, search)
        return map_children(
            stmt, lambda child: child if is_stmt(child) else self._node(child, None)
        )

    def _conditional_let(self, let: Let, lazy: IfThenElse, search: Search) -> Let | None:
        """Return the let of a search under a condition if the search can be speculated; None if the let
        becomes one of those before the statement, or equals an earlier one."""
        condition = self._node(lazy.condition, None)
        search = map_children(search, lambda child: self._node(child, condition))
        if self._is_free(search):
            result = self._result_of(search, condition)
            return Let(let.var, IfThenElse(condition, result, lazy.if_false))
        value = IfThenElse(condition, search, lazy.if_false)
        for hoisted in self._known:
            if hoisted.let.value == value:
                self._replaced[let.var.name] = hoisted.let.var
                return None
        self._add(Let(let.var, value), search, condition)
        return None

    # Other statements: stay, as does every let after them.
    def _hoist_out_of(self, loop: For) -> tuple[list[Let], For]:
        """Return the lets at the start of a loop that are invariant in it, and the rest of the loop."""
        leaving: list[Let] = []
        kept: list[Stmt] = []
        bound = {loop.var}
        for number, stmt in enumerate(loop.body):
            # Only a prefix of the body: after another statement,
            # an iteration might stop before it searches.
            if not isinstance(stmt, Let) or stmt.var.name not in self._local:
                kept += loop.body[number:]
                break
            changed = changing_buffers(loop.body, stmt.value, function=self.function)
            # A later search may use the result of this one, so it cannot leave either.
            if changed or bound & self._transitive_vars(stmt.value):
                bound.add(stmt.var.name)
                kept.append(stmt)
            else:
                leaving.append(stmt)
        # Without an iteration the search is not made: what it reads may not exist.
        runs = Compare("gt", loop.extent, ZERO)
        remaining = replace(loop, body=tuple(kept))
        return [Let(let.var, _value_where(runs, let.value)) for let in leaving], remaining

    def _transitive_vars(self, expr: Expr) -> set[str]:
        """Return the variables on which an expression depends, also through the lets of searches."""
        vars, left = set[str](), list(free_vars(expr))
        while left:
            name = left.pop()
            if name not in vars:
                vars.add(name)
                left += free_vars(self.lets[name].value) if name in self.lets else ()
        return vars

    def _node(self, node: Node, path: Expr | None) -> Any:
        if isinstance(node, IfThenElse):
            condition = self._node(node.condition, path)
            return IfThenElse(
                condition,
                self._node(node.if_true, short_circuit_and(path, condition)),
                self._node(node.if_false, short_circuit_and(path, Unary("not", condition))),
            )
        if isinstance(node, Var):
            return self._replaced.get(node.name, node)
        inner = map_children(node, lambda child: self._node(child, path))
        return self._result_of(inner, path) if isinstance(inner, Search) else inner

    def _result_of(self, search: Search, path: Expr | None) -> Var:
        # Such a search computes with variables only, so it cannot fail once its window is clamped.
        if self._is_free(search):
            search = self._clamp_to_buffer(search)
            if search not in self._vars:
                self._vars[search] = self._fresh()
                name = self._vars[search].name
                self.lets[name] = Let(self._vars[search], search)
            return self._vars[search]
        value = search if path is None else _value_where(path, search)
        for let in self._here:
            if let.value == value:
                return let.var
        return self._reused_result(search, path) or self._new_result(search, path, value=value)

    def _reused_result(self, search: Search, path: Expr | None) -> Var | None:
        """Return the variable of an equal search that was made before; None if there is none."""
        on_path = frozenset(short_circuit_conjuncts(path))
        for hoisted in self._known:
            # The earlier result is valid only where the earlier search was really made.
            if hoisted.search == search and all(
                part in on_path or self.point.is_assumed(part) for part in hoisted.conditions
            ):
                return hoisted.let.var
        return None

    def _new_result(self, search: Search, path: Expr | None, *, value: Expr) -> Var:
        let = Let(self._fresh(), value)
        self._add(let, search, path)
        return let.var

    def _add(self, let: Let, search: Search, path: Expr | None) -> None:
        """Add the let of a search under the conditions `path` before the statement."""
        self._here.append(let)
        self._local.add(let.var.name)
        conditions = frozenset(short_circuit_conjuncts(path))
        reads = buffers_read(search, *conditions)
        # Concurrent iterations may change the array, or the condition, before the next equal search.
        if reads.isdisjoint(self.point.written_by_others):
            self._known.append(_EarlierSearch(search, conditions, reads, let))

    def _fresh(self) -> Var:
        return index_var(self.namer.fresh("found"))

    def _is_free(self, search: Search) -> bool:
        """Return whether a search can be speculated wherever its variables are bound."""
        return (
            search.buffer in self._sizes
            and is_constant(search, function=self.function)
            and all(_is_harmless(node) for node in walk(search))
        )

    def _clamp_to_buffer(self, search: Search) -> Search:
        """Return the search with its window clamped to the buffer."""
        begin, end, size = search.begin, search.end, self._sizes[search.buffer]
        first = integer_value(begin)
        if first is None or first < 0:
            begin = Binary("max", begin, ZERO)
        room = distance(size, end)
        # A window that may end past the buffer. Clamping changes no result that is used.
        if room is None or room < 0:
            end = Binary("min", end, size)
        return replace(search, begin=begin, end=end)


def _value_where(condition: Expr, value: Expr) -> IfThenElse:
    """Return the value of a let if a condition holds. Where it does not, the value is not used."""
    if isinstance(value, IfThenElse):
        return IfThenElse(
            short_circuit_and(condition, value.condition), value.if_true, value.if_false
        )
    return IfThenElse(condition, value, ZERO)


def _is_harmless(node: Node) -> bool:
    if isinstance(node, Binary) and node.op in DIVISIONS:
        return isinstance(node.rhs, Const)
    kind = EXPR_KINDS[type(node)]
    return isinstance(node, Search) or not (kind.reads or kind.lazy or isinstance(node, Call))


def _unsupported_error(where: str) -> UnsupportedError:
    return UnsupportedError(
        "lower.hoist_searches.depends_on_loop",
        f"{where} contains a search that depends on the loop, which is not supported yet.",
        hint="Search in the body of the loop.",
    )


# --- placing


def _with_lets_placed(
    body: tuple[Stmt, ...], *, lets: dict[str, Let], unbound: frozenset[str]
) -> tuple[Stmt, ...]:
    """Return the statements with each let before the first one that needs it; `unbound` are the variables
    that are not bound yet."""
    result: list[Stmt] = []
    for stmt in body:
        for name in _lets_needed(stmt, lets, unbound=unbound):
            result.append(lets[name])
            unbound -= {name}
        inside = unbound.difference(vars_bound(stmt))
        result.append(with_bodies(stmt, partial(_with_lets_placed, lets=lets, unbound=inside)))
        if not has_bodies(type(stmt)):
            unbound = inside
    return tuple(result)


def _lets_needed(stmt: Stmt, lets: dict[str, Let], *, unbound: frozenset[str]) -> list[str]:
    """Return the lets that a statement uses and whose operands are bound before it, in an order in which
    each comes after those that it uses; otherwise in program order."""
    needed: list[str] = []
    used = free_vars(stmt)
    if used.isdisjoint(lets):
        return needed
    order = {name: number for number, name in enumerate(lets)}

    def visit(names: frozenset[str]) -> None:
        # In order of creation, so that the text does not depend on hashing.
        for name in sorted(names & lets.keys() & unbound - set(needed), key=order.__getitem__):
            operands = free_vars(lets[name].value)
            visit(operands)
            if not (operands & unbound) - set(needed):
                needed.append(name)

    visit(used)
    return needed
