"""Passes for devices find what a statement means for other threads in its row of `STMT_KINDS`: they need no
change for new types of statements."""

from __future__ import annotations

import pytest

from gossamer_ir.core.build import ONE, ZERO, index, index_var, sub
from gossamer_ir.core.statement_kinds import STMT_KINDS, Body, Effects, StmtKind, ThreadEffects
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Allocate,
    Barrier,
    Buffer,
    Compare,
    Expr,
    For,
    Function,
    If,
    Load,
    Node,
    Param,
    Stmt,
    Store,
    Var,
)
from gossamer_lower.device.insert_sync import _insert_barriers
from gossamer_lower.device.merge_shared_memory import _LifetimeFinder
from gossamer_lower.device.stores.concurrent_sites import ConcurrentSites
from gossamer_lower.device.thread_context import ThreadContext, UniformValues


class Rendezvous(Node, frozen=True):
    """All threads of a block wait for each other."""


class Vote(Node, frozen=True):
    """A variable has a value of other threads."""

    var: Var
    value: Expr


class LateCopy(Node, frozen=True):
    """Its stores may happen later."""

    body: tuple[Stmt, ...]


class Finish(Node, frozen=True):
    """A thread waits for all of its copies."""


@pytest.fixture(autouse=True)
def entries(monkeypatch):
    rows = {
        Rendezvous: StmtKind(lambda _: Effects(), ThreadEffects(waits_for="block")),
        Vote: StmtKind(
            lambda stmt: Effects((stmt.value,)),
            ThreadEffects(exchanges=True),
            vars=lambda stmt: (stmt.var.name,),
        ),
        LateCopy: StmtKind(
            lambda stmt: Effects(bodies=(Body("body", stmt.body, runs_always=True),)),
            ThreadEffects(is_async=True),
        ),
        Finish: StmtKind(lambda _: Effects(), ThreadEffects(pending_groups=lambda _: 0)),
    }
    for kind, row in rows.items():
        monkeypatch.setitem(STMT_KINDS, kind, row)


T, U = index_var("t"), index_var("u")
S = Buffer("S", (index(4),), "float32", scope="shared")
INTO_SHARED = Store("S", (T,), Load("X", (T,), "float32"))
FROM_SHARED = Store("X", (U,), Load("S", (sub(index(3), U),), "float32"))


def threads(name, *body):
    return For(name, ZERO, index(4), body, kind="thread_binding", thread="threadIdx.x")


def kernel(*body):
    blocks = For("b", ZERO, ONE, (Allocate(S), *body), kind="thread_binding", thread="blockIdx.x")
    x = Buffer("X", (index(4),), "float32", handle="x")
    return Function("k", (Param("x", "handle"),), (blocks,), buffers=(x,))


def barriers(function):
    """The number of barriers that are inserted."""
    (blocks,) = _insert_barriers(function).body
    return sum(isinstance(stmt, Barrier) for stmt in blocks.body)


def test_threads_that_have_waited_need_no_barrier():
    first, second = threads("t", INTO_SHARED), threads("u", FROM_SHARED)
    assert barriers(kernel(first, second)) == 1
    assert barriers(kernel(first, Rendezvous(), second)) == 0


def test_what_was_copied_is_pending_when_its_thread_has_waited():
    copying = threads("t", LateCopy((INTO_SHARED,)))
    finishing, reading = threads("v", Finish()), threads("u", FROM_SHARED)
    assert barriers(kernel(copying, Rendezvous(), reading)) == 0
    assert barriers(kernel(copying, Rendezvous(), Finish(), reading)) == 1
    assert barriers(kernel(copying, finishing, Rendezvous(), reading)) == 0


def test_a_value_of_other_threads_differs_between_threads():
    vote = Vote(index_var("v"), ZERO)
    values = UniformValues(kernel(threads("t", vote)))
    inside = ThreadContext({"threadIdx.x": "t"})
    assert not values.are_uniform(inside, index_var("v"))
    assert values.are_uniform(inside, index_var("n"))


def test_a_branch_on_a_value_of_other_threads_has_no_barrier():
    vote, branch = Vote(index_var("v"), ZERO), If(Compare("eq", index_var("v"), ONE), (Barrier(),))
    with pytest.raises(UnsupportedError, match="Not all threads of a block"):
        _insert_barriers(kernel(threads("t", vote, branch)))


@pytest.mark.parametrize("copies", [False, True])
def test_memory_that_is_written_later_is_not_used_again(copies):
    stored = LateCopy((INTO_SHARED,)) if copies else INTO_SHARED
    (lifetime,) = _LifetimeFinder().find(kernel(threads("t", stored), threads("u", FROM_SHARED)))
    assert (lifetime.last > 1000) == copies


def test_a_meeting_of_threads_ends_an_interval():
    (blocks,) = kernel(threads("t", INTO_SHARED, Rendezvous(), FROM_SHARED)).body
    sites = ConcurrentSites(blocks, {}, private=set())
    assert len(sites.intervals) == 2
