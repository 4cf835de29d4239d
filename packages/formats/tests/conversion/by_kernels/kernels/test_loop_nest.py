"""Nests are filled from the outside to the inside, and statements leave loops on which they do not depend."""

from __future__ import annotations

from gossamer_formats.conversion.by_kernels.kernels.loop_nest import (
    Tail,
    depth_of_loops,
    hoist,
    rename_bound_vars,
    without_outer_loops,
    wrap_in_nest,
)
from gossamer_formats.conversion.by_kernels.kernels.statements import (
    compare,
    let,
    loop,
    store_local,
    when,
)
from gossamer_formats.conversion.by_kernels.kernels.vector_loop import vector_loop
from gossamer_ir.core.build import ONE, ZERO, add, index, index_var
from gossamer_ir.nodes import For, If, Let, Store

ROW, POSITION, COUNT, ELEMENT = (index_var(name) for name in ("i", "j", "n", "x"))
NEST = (loop("i", ZERO, COUNT, []), let("x", add(ROW, ONE)), loop("j", ZERO, index(4), []))


def test_a_statement_follows_the_loops_whose_variables_it_does_not_read():
    (stmt,) = wrap_in_nest(
        NEST, [store_local("A", POSITION)], hoist(NEST, [], store_local("B", ELEMENT))
    )
    _, inner, after = stmt.body
    assert isinstance(inner, For)
    assert after == store_local("B", add(ROW, ONE))


def test_a_statement_that_reads_no_variable_follows_the_nest():
    tail = hoist(NEST, [], store_local("B", ZERO))
    assert tail == Tail(store_local("B", ZERO), 0)
    assert wrap_in_nest(NEST, [], tail)[-1] == tail.stmt


def test_a_statement_stays_inside_where_a_condition_outside_of_the_loops_may_be_needed():
    nest = (when(compare("lt", ZERO, COUNT), []), *NEST)
    assert hoist(nest, [], store_local("B", ELEMENT)) == Tail(
        store_local("B", ELEMENT), depth_of_loops(nest)
    )


def test_the_body_is_in_the_innermost_level():
    nest = (*NEST, when(compare("lt", POSITION, COUNT), []))
    (outer,) = wrap_in_nest(nest, [store_local("A", POSITION)])
    condition = outer.body[1].body[0]
    assert isinstance(condition, If)
    assert condition.then_body == (store_local("A", POSITION),)


FIBERS = (
    loop("i", ZERO, COUNT, []),
    loop("j", ROW, add(ROW, ONE), []),
    let("x", add(POSITION, ONE)),
)
WHOLE = {"j": loop("j", ZERO, index_var("total"), [])}


def test_a_body_that_needs_no_row_is_in_one_loop_over_all_slots():
    assert without_outer_loops(FIBERS, [store_local("A", POSITION)], WHOLE) == (WHOLE["j"],)


def test_a_body_that_needs_the_row_is_in_both_loops():
    assert without_outer_loops(FIBERS, [store_local("A", add(ROW, ELEMENT))], WHOLE) == FIBERS


def test_renamed_statements_bind_other_names():
    (outer,) = rename_bound_vars(wrap_in_nest(FIBERS, [store_local("A", ELEMENT)]), "_2")
    (inner,) = outer.body
    assert (outer.var, inner.var) == ("i_2", "j_2")
    assert inner.start == index_var("i_2")
    assert inner.body == (
        let("x_2", add(index_var("j_2"), ONE)),
        store_local("A", index_var("x_2")),
    )


def test_a_loop_of_constant_width_becomes_vectors():
    loop = vector_loop((*NEST, let("p", add(ELEMENT, POSITION))), [let("y", ELEMENT)])
    assert (loop.loop.var, loop.depth) == ("j", 1)
    assert [each.var.name for each in loop.bindings] == ["p"]
    assert [each.var.name for each in loop.outer if isinstance(each, Let)] == ["x", "y"]
    assert loop.with_body([]).kind == "vectorized"


def test_a_loop_is_not_in_vectors_if_elements_are_left_out_or_more_is_stored():
    assert vector_loop((*NEST, when(compare("lt", POSITION, COUNT), [])), []) is None
    assert vector_loop(NEST, [Store("A", (POSITION,), POSITION)]) is None


def test_a_loop_of_another_width_is_not_in_vectors():
    assert vector_loop((loop("i", ZERO, COUNT, []),), []) is None
    assert vector_loop((loop("i", ZERO, index(5), []),), []) is None
