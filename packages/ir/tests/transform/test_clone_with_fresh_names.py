"""`with_fresh_names`: a clone declares nothing that the original declares, and refers to its own names."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gossamer_ir.core.build import ONE, ZERO, add, index_var
from gossamer_ir.core.statement_kinds import ONE_THREAD, STMT_KINDS, StmtKind, effects_of
from gossamer_ir.nodes import (
    Allocate,
    Block,
    BlockIter,
    Buffer,
    For,
    If,
    Iteration,
    Let,
    Load,
    OverAxis,
    ParallelFor,
    Range,
    Region,
    Shuffle,
    Store,
    Var,
)
from gossamer_ir.transform.clone_with_fresh_names import with_fresh_names
from gossamer_ir.traversal.equality import structural_equal
from gossamer_ir.traversal.fields import LABEL_FIELDS, NAME_FIELDS
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.statement_queries import declared_names
from gossamer_ir.traversal.walk import stmts, walk

N = index_var("n")
WHOLE = Range(ZERO, N)


def store(name):
    """A statement that uses a variable."""
    return Store("Y", (index_var(name),), add(index_var(name), Load("X", (N,), "int64")))


SAMPLES = {
    Let: (Let(Var("x", "int64"), N), store("x")),
    Allocate: (
        Allocate(Buffer("W", (N,), "int64")),
        Block("b", (), (Store("W", (ZERO,), ONE),), reads=(), writes=(Region("W", (WHOLE,)),)),
        ParallelFor("chunk", "q", ZERO, N, (Var("W", "handle"),)),
    ),
    For: (For("i", ZERO, N, (store("i"),), "parallel", weight=index_var("i")),),
    Block: (
        Block(
            "b",
            (BlockIter("v", "S", WHOLE, N),),
            (store("v"),),
            (store("v"),),
            index_var("v"),
            reads=(Region("X", (Range(index_var("v"), ONE),)),),
        ),
    ),
    Iteration: (Iteration("it", (OverAxis("I"),), "S", ("i",), (store("i"),), (store("i"),)),),
    ParallelFor: (ParallelFor("f", "i", ZERO, N, (N,), weight=index_var("i")),),
    Shuffle: (Shuffle("xor", Var("x", "int64"), N, 1), store("x")),
}
"""Statements that declare names, and use them wherever such a name may occur; by the type that declares."""


def declared(body):
    return {name for stmt in stmts(body) for name in declared_names(stmt)}


def texts(body, table):
    """The names, or labels, that occur in the fields of statements and of all nodes below them."""
    values = [getattr(node, field) for node in walk(*body) for field in table[type(node)]]
    return {text for value in values for text in (value if isinstance(value, tuple) else [value])}


def with_labels_of(body, original):
    """The body with the labels of another one, since structural equality compares labels."""
    return tuple(
        replace(stmt, **{field: getattr(old, field) for field in LABEL_FIELDS[type(stmt)]})
        for stmt, old in zip(body, original, strict=True)
    )


def test_every_kind_of_statement_that_declares_a_name_has_a_sample():
    without_vars = StmtKind(effects_of, ONE_THREAD).vars
    assert set(SAMPLES) == {
        kind
        for kind, row in STMT_KINDS.items()
        if row.vars is not without_vars or row.allocates or LABEL_FIELDS[kind]
    }
    for kind, body in SAMPLES.items():
        assert any(type(stmt) is kind for stmt in body)


@pytest.mark.parametrize("kind", SAMPLES, ids=lambda kind: kind.__name__)
def test_everything_that_a_statement_declares_is_renamed_everywhere(kind):
    body = SAMPLES[kind]
    clone = with_fresh_names(body, Namer(["n", "X", "Y", "I", *declared(body)]))
    assert len(declared(clone)) == len(declared(body))
    assert not declared(clone) & declared(body)
    for table in (NAME_FIELDS, LABEL_FIELDS):
        assert not texts(clone, table) & declared(body)
    assert texts(body, NAME_FIELDS) - declared(body) == texts(clone, NAME_FIELDS) - declared(clone)
    assert structural_equal(If(ONE, with_labels_of(clone, body)), If(ONE, body))


def test_a_label_is_not_mistaken_for_a_buffer_or_a_variable_of_the_same_name():
    body = (Block("Y", (), (store("n"),)),)
    assert with_fresh_names(body, Namer(["Y", "n"])) == (Block("Y_1", (), (store("n"),)),)


def test_values_replace_free_variables_only():
    body = (store("n"), For("i", ZERO, N, (store("i"),)))
    clone = with_fresh_names(body, Namer(["i"]), values={"n": ONE, "i": ZERO})
    used = add(index_var("i_1"), Load("X", (ONE,), "int64"))
    assert clone[1] == For("i_1", ZERO, ONE, (Store("Y", (index_var("i_1"),), used),))


def test_a_body_that_declares_nothing_stays_the_same_object():
    body = (store("n"),)
    assert with_fresh_names(body, Namer()) is body
