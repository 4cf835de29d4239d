"""Helpers for statement bodies handle every statement type that has a body."""

from __future__ import annotations

import pytest

from gossamer_ir.core.build import ONE, ZERO, index_var
from gossamer_ir.core.conditions import TRUE
from gossamer_ir.core.statement_kinds import ONE_THREAD, STMT_KINDS, Body, Effects, StmtKind
from gossamer_ir.nodes import (
    STMTS,
    AsyncCopy,
    Block,
    Combine,
    Compare,
    Expr,
    For,
    Function,
    If,
    Iteration,
    Load,
    Node,
    Stmt,
    Store,
    Unary,
    While,
)
from gossamer_lower.statements.point_visitor import PointVisitor
from gossamer_lower.statements.rebuild import with_bodies

STORE = Store("Y", (index_var("i"),), ONE)
HOLDING = {
    For: For("i", ZERO, ONE, (STORE,)),
    While: While(TRUE, (STORE,)),
    If: If(TRUE, (STORE,), (STORE,)),
    AsyncCopy: AsyncCopy((STORE,)),
}
GONE = {Block, Iteration, Combine}
"""Statements that earlier passes remove."""


def test_every_statement_that_holds_others_is_known():
    kinds = {
        kind
        for kind in STMTS
        if {"tuple[Stmt, ...]", "tuple[Store, ...]"} & set(kind.__annotations__.values())
    }
    assert kinds == HOLDING.keys() | GONE


@pytest.mark.parametrize("kind", HOLDING, ids=lambda kind: kind.__name__)
def test_all_bodies_are_changed(kind):
    empty = with_bodies(HOLDING[kind], lambda _: ())
    assert all(value != (STORE,) for value in map(empty.__getattribute__, kind.__struct_fields__))


class Repeat(Node, frozen=True):
    """A statement that no pass knows."""

    times: Expr
    body: tuple[Stmt, ...]


def test_a_new_statement_with_a_body_is_visited(monkeypatch):
    monkeypatch.setitem(
        STMT_KINDS,
        Repeat,
        StmtKind(lambda stmt: Effects(bodies=(Body("body", stmt.body, repeats=True),)), ONE_THREAD),
    )
    loop = Repeat(index_var("n"), (If(TRUE, (STORE,)),))

    class WithoutChoices(PointVisitor):
        def stmt(self, stmt):
            return stmt.then_body if isinstance(stmt, If) else (self.inside(stmt),)

    visitor = WithoutChoices(Function("f", (), (loop,)))
    assert visitor.body((loop,)) == (Repeat(index_var("n"), (STORE,)),)


@pytest.mark.parametrize(
    ("condition", "is_proved"),
    [
        (Compare("ge", index_var("i"), index_var("n")), True),
        (Compare("ge", Load("Y", (index_var("i"),), "int64"), index_var("n")), False),
    ],
    ids=["of a variable", "of what the branch writes"],
)
def test_the_negated_condition_holds_in_an_else_branch(condition, is_proved):
    (branch,) = visited_points(If(condition, (), (STORE,)), Unary("not", condition))
    assert branch == is_proved


@pytest.mark.parametrize(
    ("condition", "is_proved"),
    [
        (Compare("lt", index_var("i"), index_var("n")), True),
        (Compare("lt", Load("Y", (index_var("i"),), "int64"), index_var("n")), False),
    ],
    ids=["of a variable", "of what the body writes"],
)
def test_the_condition_of_a_while_loop_holds_in_its_body(condition, is_proved):
    assert visited_points(While(condition, (STORE,)), condition) == [is_proved]


def visited_points(stmt, condition):
    """Return whether a condition is proved before each store in a statement."""
    proved = []

    class Querying(PointVisitor):
        def stmt(self, stmt):
            if isinstance(stmt, Store):
                proved.append(self.point.proves(condition))
            return (self.inside(stmt),)

    function = Function("f", (), (stmt,))
    Querying(function).body(function.body)
    return proved
