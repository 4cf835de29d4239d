"""A new type of node is handled wherever its fields, or its entry in a table of effects, say enough."""

from __future__ import annotations

import pytest

from gossamer_ir.analysis.accesses.buffer_accesses import accesses
from gossamer_ir.analysis.lane_projection import lane_of
from gossamer_ir.core.build import ONE, ZERO, add, index, index_var
from gossamer_ir.core.constants import constant
from gossamer_ir.core.expression_kinds import EXPR_KINDS, ExprKind, dtype_of
from gossamer_ir.core.statement_kinds import ONE_THREAD, STMT_KINDS, Body, Effects, StmtKind
from gossamer_ir.nodes import (
    Buffer,
    Expr,
    For,
    Function,
    Lanes,
    Load,
    Name,
    Node,
    Ramp,
    Stmt,
    Store,
)
from gossamer_ir.transform.clone_with_fresh_names import with_fresh_names
from gossamer_ir.transform.retype import retype_function
from gossamer_ir.traversal.buffer_uses import buffers_written
from gossamer_ir.traversal.equality import structural_equal
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_ir.traversal.statement_queries import vars_bound
from gossamer_ir.traversal.substitute import substitute
from gossamer_ir.traversal.walk import collect, stmts


class Twice(Node, frozen=True):
    """The double of a value, in each lane."""

    value: Expr


class Nearest(Node, frozen=True):
    """The value that is nearest to the first one, of values of one dtype."""

    values: tuple[Expr, ...]


class Repeat(Node, frozen=True):
    """A loop that runs a number of times."""

    var: Name
    times: Expr
    body: tuple[Stmt, ...]


INDEX, N = index_var("i"), index_var("n")
REPEAT = StmtKind(
    lambda stmt: Effects((stmt.times,), bodies=(Body("body", stmt.body, repeats=True),)),
    ONE_THREAD,
    vars=lambda stmt: (stmt.var,),
    loop=lambda stmt: For(stmt.var, ZERO, stmt.times, ()),
    is_loop=True,
)
LOOP = Repeat("i", N, (Store("Y", (INDEX,), Twice(Load("X", (INDEX,), "int64"))),))


@pytest.fixture
def entries(monkeypatch):
    """The entries of the new nodes in the tables of effects."""
    monkeypatch.setitem(EXPR_KINDS, Twice, ExprKind(lambda expr: dtype_of(expr.value)))
    monkeypatch.setitem(STMT_KINDS, Repeat, REPEAT)


def test_a_new_node_is_walked_and_rewritten_by_its_fields():
    assert [type(stmt) for stmt in stmts((LOOP,))] == [Repeat, Store]
    assert free_vars(LOOP) == {"i", "n"}
    assert [load.buffer for load in collect(Load, LOOP)] == ["X"]
    assert substitute(Twice(INDEX), {"i": ONE}) == Twice(ONE)
    assert rewrite(LOOP, lambda node: ZERO if node == N else None).times == ZERO


def test_new_nodes_are_equal_up_to_the_names_that_they_declare():
    other = substitute(LOOP, {"i": index_var("j")})
    assert structural_equal(LOOP, Repeat("j", N, other.body))
    assert not structural_equal(LOOP, Repeat("n", N, LOOP.body))


def test_an_elementwise_expression_has_a_dtype_and_lanes(entries):
    ramp = Ramp(INDEX, index(3), Lanes(4))
    assert dtype_of(Twice(ramp)) == "int64x4"
    assert lane_of(Twice(ramp), ONE) == Twice(add(INDEX, index(3)))


def test_operands_of_one_dtype_follow_a_retyped_one(monkeypatch):
    kind = ExprKind(lambda expr: dtype_of(expr.values[0]), operands_of_one_dtype=("values",))
    monkeypatch.setitem(EXPR_KINDS, Nearest, kind)
    nearest = Nearest((Load("X", (ZERO,), "float32"), constant(2, "float32")))
    buffers = tuple(Buffer(name, (ONE,), "float32", name.lower()) for name in "XY")
    function = Function("f", (), (Store("Y", (ZERO,), nearest),), buffers=buffers)
    (store,) = retype_function(function, {"X": "float64", "Y": "float64"}).body
    assert [dtype_of(value) for value in store.value.values] == ["float64", "float64"]


def test_a_statement_has_its_effects(entries):
    assert vars_bound(LOOP) == ("i",)
    assert buffers_written((LOOP,)) == {"Y"}
    assert {access.buffer for access in accesses((LOOP,))} == {"X", "Y"}


def test_what_a_statement_binds_is_renamed_in_its_clone(entries):
    (clone,) = with_fresh_names((LOOP,), Namer(["i"]))
    assert (clone.var, free_vars(clone)) == ("i_1", {"i_1", "n"})
    assert structural_equal(clone, LOOP)
