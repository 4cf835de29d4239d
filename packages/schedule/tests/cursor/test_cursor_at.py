"""Cursors relate statements to their siblings and ancestors, and replace them."""

from __future__ import annotations

import pytest

from gossamer_ir.nodes import Block, For
from gossamer_schedule.cursor.cursor_at import cursor_at, find_by_name, name_of
from gossamer_testkit.examples import STAGED


def at(kind, name):
    """The cursor at a statement of the program `staged`: loops j and k, one after the other, in loop i."""
    (cursor,) = find_by_name(cursor_at(STAGED, STAGED.functions[0]), kind, name)
    return cursor


def test_siblings_are_in_one_body_and_in_order():
    i, j, k = (at(For, name) for name in "ijk")
    assert j.is_beside(k)
    assert j.precedes(k)
    assert not k.precedes(j)
    assert not j.precedes(j)
    assert not i.is_beside(j)
    assert not at(Block, "fetch").is_beside(at(Block, "scale"))


def test_steps_lead_from_an_ancestor_down():
    i, fetch = at(For, "i"), at(Block, "fetch")
    assert [name_of(step.parent) for step in fetch.steps_from(i)] == ["i", "j"]
    assert fetch.steps_from(fetch) == ()
    assert [name_of(stmt) for stmt in at(For, "k").path[-1].earlier] == ["j"]


@pytest.mark.parametrize(("first", "count", "left"), [("j", 1, "k"), ("k", 1, "j"), ("j", 2, "")])
def test_adjacent_siblings_are_replaced(first, count, left):
    block = at(Block, "fetch").node
    changed = at(For, first).replace_run(count, (block,))
    (loop,) = changed.node.body
    assert block in loop.body
    assert [name_of(stmt) for stmt in loop.body if stmt is not block] == [*left]
    assert changed.module.functions == (changed.node,)
