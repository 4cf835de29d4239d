"""The table of statement kinds covers every node type, and its entries agree with the fields of the nodes."""

from __future__ import annotations

import msgspec
import pytest

from gossamer_ir.core.build import ONE, ZERO, handle, index_var
from gossamer_ir.core.expression_kinds import EXPR_KINDS, LAZY
from gossamer_ir.core.statement_kinds import (
    ALLOCATING_STMTS,
    CALLING_STMTS,
    CHECKING_STMTS,
    LOOPS,
    NAME_BINDING_STMTS,
    STMT_KINDS,
    VALUE_BINDING_STMTS,
    WRITES,
    effects_of,
)
from gossamer_ir.nodes import (
    EXPRS,
    STMTS,
    Allocate,
    AsyncCopy,
    Atomic,
    Barrier,
    Block,
    BlockIter,
    Buffer,
    Combine,
    CommitGroup,
    Const,
    For,
    Function,
    Guard,
    If,
    IfThenElse,
    Iteration,
    Launch,
    Let,
    OverAxis,
    ParallelFor,
    Prefetch,
    Range,
    Shuffle,
    Store,
    ThreadExtent,
    Unary,
    WaitGroup,
    While,
)
from gossamer_ir.traversal.access_types import BUFFER_NODES
from gossamer_ir.traversal.buffer_uses import buffers_written
from gossamer_ir.traversal.fields import LABEL_FIELDS, body_fields, has_bodies
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import names_in
from gossamer_ir.traversal.statement_queries import (
    allocation_of,
    always_evaluated,
    body_in,
    condition_after,
    declared_names,
    defines_only,
    labels_of,
    loop_of,
    names_after,
    names_bound,
    values_after,
    values_bound,
    vars_bound,
    while_body,
)
from gossamer_ir.traversal.walk import children, stmts

A, B, C, D = map(index_var, "abcd")
STORE = Store("Y", (A,), B)
LET = Let(index_var("let"), C)
TRUE = Const("bool", "True")
DOMAIN = Range(ZERO, index_var("domain"))

SAMPLES = {
    Store: Store("Y", (A,), B, C),
    Combine: Combine("sum", (STORE,)),
    Atomic: Atomic("add", "Y", (A,), B),
    Let: LET,
    Allocate: Allocate(Buffer("W", (A, B), "float32")),
    If: If(A, (STORE,), (LET,)),
    While: While(A, (STORE,)),
    For: For("i", A, B, (STORE,), "parallel", weight=C, grain=D),
    Block: Block("b", (BlockIter("v", "S", DOMAIN, A),), (STORE,), (LET,), B),
    Iteration: Iteration("it", (OverAxis("I"),), "S", ("i",), (STORE,), (LET,)),
    Prefetch: Prefetch("X", (A,)),
    Guard: Guard(A, "X"),
    Barrier: Barrier(),
    Shuffle: Shuffle("xor", index_var("other"), A, 1),
    AsyncCopy: AsyncCopy((STORE,)),
    CommitGroup: CommitGroup(),
    WaitGroup: WaitGroup(1),
    ParallelFor: ParallelFor("f", "i", A, B, (handle("y"), C), D),
    Launch: Launch("f", (handle("y"), A), (ThreadExtent("threadIdx.x", B),)),
}
"""One statement of each type, with a variable in each place where an expression is evaluated."""


def test_every_kind_of_node_has_an_entry():
    assert set(STMT_KINDS) == set(STMTS) == set(SAMPLES)
    assert set(EXPR_KINDS) == set(EXPRS)


@pytest.mark.parametrize("kind", STMTS, ids=lambda kind: kind.__name__)
def test_every_expression_of_a_statement_is_evaluated_or_in_a_body(kind):
    stmt = SAMPLES[kind]
    effects = effects_of(stmt)
    inside = [inner for body in effects.bodies for inner in body.stmts]
    assert not {child for child in children(stmt) if isinstance(child, STMTS)} - set(inside)
    evaluated = free_vars(*effects.evaluates, *inside) | {
        "domain",
        *vars_bound(stmt),
        *effects.passed_buffers,
    }
    assert free_vars(stmt) <= evaluated


@pytest.mark.parametrize("kind", STMTS, ids=lambda kind: kind.__name__)
def test_every_text_field_is_an_effect(kind):
    """A name in a statement is bound, labels the statement, or names a buffer or a function."""
    stmt, effects = SAMPLES[kind], effects_of(SAMPLES[kind])
    texts = {
        field.name: getattr(stmt, field.name)
        for field in msgspec.structs.fields(kind)
        if field.type is str
    }
    told = {*declared_names(stmt), effects.callee, *(write.buffer for write in effects.writes)}
    is_declared = {"buffer": kind in BUFFER_NODES, "reducer": kind is Combine, "kinds": True}
    assert [name for name, text in texts.items() if not is_declared.get(name, text in told)] == []


@pytest.mark.parametrize("kind", STMTS, ids=lambda kind: kind.__name__)
def test_what_is_written_is_what_the_table_says(kind):
    body = (SAMPLES[kind],)
    effects = [effects_of(stmt) for stmt in stmts(body)]
    told = {write.buffer for entry in effects for write in entry.writes}
    assert buffers_written(body) == told | {
        name for entry in effects for name in entry.passed_buffers
    }


def test_only_if_then_else_leaves_operands_unevaluated():
    """Another lazy expression needs a rule wherever operands are analyzed under a condition, too: in
    `in_bounds`, `insert_bounds_checks`, `proved_conditions`, `search_results`, `hoist_searches` and
    `lower_math`."""
    assert {IfThenElse: {"if_true", "if_false"}} == LAZY


@pytest.mark.parametrize("kind", STMTS, ids=lambda kind: kind.__name__)
def test_what_is_evaluated_with_a_statement_is_what_the_table_says(kind):
    assert always_evaluated(SAMPLES[kind]) == effects_of(SAMPLES[kind]).evaluates


def test_loops_and_checks_are_what_the_table_says():
    """A loop repeats its body, or the call of a function."""
    repeating = {
        kind
        for kind, stmt in SAMPLES.items()
        if any(body.repeats and not body.is_init for body in effects_of(stmt).bodies)
    }
    assert set(LOOPS) == {*repeating, ParallelFor}
    assert {kind for kind, stmt in SAMPLES.items() if while_body(stmt)} == {While}
    assert {kind for kind, stmt in SAMPLES.items() if defines_only(stmt)} == {Let, Allocate}
    assert set(CHECKING_STMTS) <= set(BUFFER_NODES)
    assert set(ALLOCATING_STMTS) == {Allocate}
    assert {kind: condition_after(SAMPLES[kind]) for kind in CHECKING_STMTS} == {Guard: A}


def test_a_value_after_a_statement_is_that_of_a_let():
    after = {kind: values_after(stmt) for kind, stmt in SAMPLES.items() if values_after(stmt)}
    assert after == {Let: ((LET.var, C),)}
    assert [*values_bound(SAMPLES[Block])] == [(index_var("v"), A)]


def test_kinds_that_write_and_call_are_what_the_table_says():
    assert set(WRITES) == {kind for kind, stmt in SAMPLES.items() if effects_of(stmt).writes}
    assert set(CALLING_STMTS) == {kind for kind, stmt in SAMPLES.items() if effects_of(stmt).callee}


@pytest.mark.parametrize("kind", SAMPLES, ids=lambda kind: kind.__name__)
def test_sets_of_kinds_that_bind_are_what_the_table_says(kind):
    stmt = SAMPLES[kind]
    assert (kind in NAME_BINDING_STMTS) == bool(names_bound(stmt))
    assert (kind in VALUE_BINDING_STMTS) == bool(tuple(values_bound(stmt)))


@pytest.mark.parametrize("kind", SAMPLES, ids=lambda kind: kind.__name__)
def test_names_of_a_function_are_those_of_all_kinds_of_statements(kind):
    names = set(names_in(Function("f", (), (SAMPLES[kind],))))
    assert names >= {"f", *declared_names(SAMPLES[kind])}


@pytest.mark.parametrize("kind", SAMPLES, ids=lambda kind: kind.__name__)
def test_kinds_that_bind_and_take_names_are_what_the_table_says(kind):
    stmt = SAMPLES[kind]
    allocated = () if allocation_of(stmt) is None else (allocation_of(stmt).name,)
    assert names_bound(stmt) == (*vars_bound(stmt), *allocated)
    assert declared_names(stmt) == (*labels_of(stmt), *names_bound(stmt))
    assert labels_of(stmt) == tuple(getattr(stmt, field) for field in LABEL_FIELDS[kind])
    assert names_after(stmt) == (() if has_bodies(kind) else names_bound(stmt))
    loop = loop_of(stmt)
    equal = {var.name for var, _ in values_bound(stmt)} | ({loop.var} if loop else set())
    assert equal <= set(vars_bound(stmt))


def test_the_variables_of_each_kind_that_binds_some():
    bound = {kind: vars_bound(stmt) for kind, stmt in SAMPLES.items()}
    assert {kind: names for kind, names in bound.items() if names} == {
        Let: ("let",), For: ("i",), Block: ("v",), Iteration: ("i",), Shuffle: ("other",),
        ParallelFor: ("i",),
    }  # fmt: skip


def test_a_body_that_may_not_run_says_so():
    always = {
        kind.__name__: [body.runs_always for body in effects_of(stmt).bodies]
        for kind, stmt in SAMPLES.items()
        if effects_of(stmt).bodies
    }
    assert always == {
        "Combine": [True],
        "AsyncCopy": [True],
        "If": [False, False],
        "While": [False],
        "For": [False],
        "Block": [False, False],
        "Iteration": [False, False],
    }
    assert effects_of(For("i", ZERO, ONE, (STORE,))).bodies[0].runs_always
    assert not effects_of(For("i", ZERO, ZERO, (STORE,))).bodies[0].runs_always


@pytest.mark.parametrize("kind", STMTS, ids=lambda kind: kind.__name__)
def test_bodies_are_the_fields_that_hold_statements(kind):
    stmt = SAMPLES[kind]
    bodies = effects_of(stmt).bodies
    assert {body.field: body.stmts for body in bodies} == {
        field: getattr(stmt, field) for field in body_fields(kind)
    }
    assert [body_in(stmt, body.field) for body in bodies] == [*bodies]


def test_each_body_has_the_condition_under_which_it_runs():
    conditions = {
        kind.__name__: [body.condition for body in effects_of(stmt).bodies]
        for kind, stmt in SAMPLES.items()
    }
    assert {kind: condition for kind, condition in conditions.items() if any(condition)} == {
        "If": [A, Unary("not", A)],
        "While": [A],
        "Block": [None, B],
    }


def test_a_loop_binds_for_its_body_and_a_let_for_what_follows():
    assert declared_names(SAMPLES[Block]) == ("b", "v")
    assert declared_names(LET) == ("let",)
    assert effects_of(LET).bodies == ()
    assert declared_names(SAMPLES[Allocate]) == ("W",)
