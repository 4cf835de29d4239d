"""The elements that a block loads, each with the condition under which it does, and the iterators that select
them."""

from __future__ import annotations

import textwrap

import pytest

from gossamer_ir.nodes import Block
from gossamer_ir.script import parse_module, print_expr
from gossamer_schedule.cursor.cursor_at import cursor_at
from gossamer_schedule.cursor.find import find_block
from gossamer_schedule.staging.cache_checks import selecting_iters
from gossamer_schedule.staging.loads import loads_and_stores_of, loads_of

PROGRAM = """
@T.prim_func
def program(x: T.handle, y: T.handle, p: T.handle, n: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    P = T.match_buffer(p, (n,), "int32")
    T.assume(in_range(P, 0, n))
    for i in T.serial(n):
        for j in T.serial(n):
            with T.block("block"):
                vi, vj = T.axis.remap("SS", [i, j])
"""


def block_of(body):
    text = PROGRAM + textwrap.indent(textwrap.dedent(body).strip(), " " * 16)
    module = parse_module(text)
    return find_block(cursor_at(module, module.functions[0]), block="block")


def texts(loads):
    return [
        (
            ", ".join(map(print_expr, load.indices)),
            None if load.condition is None else print_expr(load.condition),
        )
        for load in loads
    ]


@pytest.mark.parametrize(
    ("body", "loads"),
    [
        ("Y[vi] = X[vi]", [("vi", None)]),
        ("Y[vi] = X[vi] * X[vi]", [("vi", None)]),
        ("Y[vi] = X[vi] + X[vj]", [("vi", None), ("vj", None)]),
        ("Y[vi] = X[T.int64(P[vj])]", [("T.int64(P[vj])", None)]),
        ("if vi < vj:\n    Y[vi] = X[vi]", [("vi", "vi < vj")]),
        ("if vi < vj:\n    Y[vi] = X[vi]\nelse:\n    Y[vi] = X[vj]",
         [("vi", "vi < vj"), ("vj", "not vi < vj")]),
        ("if vi < vj:\n    Y[vi] = X[vi]\nY[vj] = X[vi]", [("vi", None)]),
        ("Y[vi] = X[vi] if vj < 3 else 0.0", [("vi", "vj < 3")]),
        ("Y[vi] = 1.0", []),
    ],
)  # fmt: skip
def test_each_element_is_loaded_once_under_the_condition_of_all_its_loads(body, loads):
    assert texts(loads_of(block_of(body), "X")) == loads


def test_elements_that_are_stored_are_among_those_of_a_copy_in_place():
    loads, stored = loads_and_stores_of(block_of("Y[vi] = Y[vj] + X[vi]"), "Y", "float32")
    assert sorted(texts(loads)) == [("vi", None), ("vj", None)]
    assert [tuple(map(print_expr, indices)) for indices in stored] == [("vi",)]


def test_elements_that_the_loops_around_an_init_load_are_not_stored():
    body = """
        for k in T.serial(T.int64(P[vi])):
            for r in T.serial(n):
                with T.block("sum"):
                    vk, vr = T.axis.remap("SR", [k, r])
                    with T.init():
                        P[vj] = 0
                    P[vj] = P[vj] + 1
    """
    loads, stored = loads_and_stores_of(block_of(body), "P", "int32")
    assert texts(loads) == [("vi", None), ("vj", "T.int64(P[vi]) > 0")]
    assert [tuple(map(print_expr, indices)) for indices in stored] == [("vj",)]


@pytest.mark.parametrize(
    ("body", "selecting"),
    [
        ("Y[vi] = X[vi]", ["vi"]),
        ("Y[vi] = X[vj]", ["vj"]),
        ("Y[vi] = X[T.int64(P[vi]) * n + vj]", ["vi", "vj"]),
        ("Y[vi] = X[0]", []),
    ],
)
def test_iterators_select_the_elements_that_are_copied(body, selecting):
    cursor = block_of(body)
    assert isinstance(cursor.node, Block)
    (load,) = loads_of(cursor, "X")
    iters = selecting_iters(cursor.node, load.indices)
    assert [iterator.var for iterator in iters] == selecting
