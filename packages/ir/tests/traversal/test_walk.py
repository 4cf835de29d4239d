"""Traversal and rewriting of every node type."""

from __future__ import annotations

import msgspec
import pytest

from gossamer_ir import nodes
from gossamer_ir.core.build import add, index, index_var
from gossamer_ir.nodes import For, If, Load, Node, Store, Var
from gossamer_ir.traversal.fields import BODIES_BACKWARDS, FIELDS, LEAVES
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.rewrite import map_children, rewrite, rewrite_body
from gossamer_ir.traversal.substitute import substitute, substitute_body
from gossamer_ir.traversal.walk import children, collect, stmts, walk

KINDS = [
    member
    for member in vars(nodes).values()
    if isinstance(member, type) and issubclass(member, Node) and member is not Node
]


def _may_hold_nodes(field_type: object) -> bool:
    """Inspects a field's type independently, with msgspec."""
    kind = type(field_type).__name__
    if kind == "StructType":
        return True
    if kind == "UnionType":
        return any(_may_hold_nodes(part) for part in field_type.types)
    if kind == "VarTupleType":
        return _may_hold_nodes(field_type.item_type)
    return False


def _may_hold_stmts(field_type: object) -> bool:
    if type(field_type).__name__ != "VarTupleType":
        return False
    kinds = getattr(field_type.item_type, "types", (field_type.item_type,))
    return any(getattr(kind, "cls", None) in nodes.STMTS for kind in kinds)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_field_that_may_hold_nodes_is_walked(kind):
    fields = msgspec.inspect.type_info(kind).fields
    assert FIELDS[kind] == tuple(field.name for field in fields if _may_hold_nodes(field.type))


LOOP = For("i", index(0), index(4), (Store("x", (index_var("i"),), index_var("n")),))


def test_children_come_in_the_order_of_the_fields():
    assert list(children(LOOP)) == [index(0), index(4), LOOP.body[0]]


def test_walk_visits_parents_first():
    kinds = [type(node).__name__ for node in walk(LOOP)]
    assert kinds == ["For", "Const", "Const", "Store", "Var", "Var"]


@pytest.mark.parametrize("kind", [*nodes.STMTS, nodes.Function], ids=lambda kind: kind.__name__)
def test_statements_are_found_wherever_they_may_stand(kind):
    """A statement in each field that may contain statements is found, and nothing else is."""
    fields = msgspec.inspect.type_info(kind).fields
    names = [field.name for field in fields if _may_hold_stmts(field.type)]
    assert BODIES_BACKWARDS[kind] == tuple(reversed(names))


def test_statements_stay_out_of_expressions():
    both = If(index_var("c"), (LOOP,), (LOOP.body[0],))
    assert list(stmts((both,))) == [both, LOOP, LOOP.body[0], LOOP.body[0]]


def test_several_nodes_are_walked_one_after_the_other():
    assert list(walk(*LOOP.body, LOOP)) == [*walk(LOOP.body[0]), *walk(LOOP)]


def test_a_rewriter_returns_the_same_object_where_nothing_changed():
    assert rewrite(LOOP, lambda _node: None) is LOOP
    assert substitute(LOOP, {"absent": index(1)}) is LOOP
    assert map_children(LOOP, lambda child: child) is LOOP


def test_a_statement_may_become_several_or_none():
    body = (If(Var("p", "bool"), (LOOP,)),)

    def twice(node):
        return (node, node) if isinstance(node, Store) else None

    def none(node):
        return () if isinstance(node, Store) else None

    assert len(rewrite(body[0], twice).then_body[0].body) == 2
    assert rewrite(body[0], none).then_body[0].body == ()


def test_substitution_replaces_variables_by_name():
    expr = add(index_var("i"), Load("x", (index_var("j"),), "int64"))
    assert free_vars(expr) == {"i", "j"}
    assert free_vars(substitute(expr, {"j": index(3)})) == {"i"}
    assert substitute_body((LOOP,), {"n": index(7)})[0].body[0].value == index(7)


def test_an_expression_that_stands_twice_is_rewritten_once_and_a_statement_each_time():
    shared = add(index_var("i"), index(1))
    store = Store("x", (shared,), shared)
    asked = []
    rewrite_body((store, store), asked.append)
    assert [sum(visited is node for visited in asked) for node in (shared, store)] == [1, 2]


def test_occurrences_are_those_of_the_walk_that_are_of_a_kind():
    body = (LOOP, LOOP)
    assert collect((Var, Store), *body) == [
        node for node in walk(*body) if isinstance(node, (Var, Store))
    ]


def test_below_leaves_there_are_no_nodes():
    assert not any(FIELDS[kind] for kind in LEAVES - {type(None)})
