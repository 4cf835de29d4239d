"""The table of entries in the axis list of an iteration covers every type, and decides what each one does."""

from __future__ import annotations

from typing import get_args

import pytest

from gossamer_ir.core.iteration_axes import (
    ITERATION_AXIS_KINDS,
    IterationAxisKind,
    all_axis_names,
    attachment_of,
    axis_names,
    iterated_axes,
)
from gossamer_ir.nodes import AttachAxis, FuseAxes, Iteration, IterationAxis, Name, Node, OverAxis
from gossamer_ir.traversal.fields import name_fields

ITERATION_AXES = get_args(IterationAxis)
SAMPLES = {
    OverAxis: OverAxis("I"),
    FuseAxes: FuseAxes(("J", "K")),
    AttachAxis: AttachAxis("L", "I"),
}
"""One entry of each type."""


class Reversed(Node, frozen=True):
    """A type of entry that the language lacks: one axis, from its last element to its first."""

    axis: Name


def test_every_kind_of_entry_is_in_the_table():
    assert set(ITERATION_AXIS_KINDS) == set(ITERATION_AXES) == set(SAMPLES)


@pytest.mark.parametrize("kind", ITERATION_AXES, ids=lambda kind: kind.__name__)
def test_every_name_in_an_entry_is_iterated_or_selects_its_fiber(kind):
    entry = SAMPLES[kind]
    fields = [getattr(entry, field) for field in name_fields(kind)]
    named = {name for value in fields for name in ([value] if isinstance(value, str) else value)}
    assert {*axis_names(entry), attachment_of(entry)} - {None} == named


def test_each_entry_has_its_kinds_and_variables():
    node = Iteration("it", tuple(SAMPLES.values()), "SRSS", ("i", "j", "k", "l"), ())
    assert all_axis_names(node.axes) == ("I", "J", "K", "L")
    assert [(item.axis, item.kinds, item.vars) for item in iterated_axes(node)] == [
        (OverAxis("I"), "S", ("i",)),
        (FuseAxes(("J", "K")), "RS", ("j", "k")),
        (AttachAxis("L", "I"), "S", ("l",)),
    ]


def test_a_new_kind_of_entry_is_enumerated_by_its_row(monkeypatch):
    with pytest.raises(KeyError):
        axis_names(Reversed("I"))
    monkeypatch.setitem(
        ITERATION_AXIS_KINDS, Reversed, IterationAxisKind(lambda entry: (entry.axis,))
    )
    assert set(ITERATION_AXIS_KINDS) != set(ITERATION_AXES)
    node = Iteration("it", (Reversed("I"), OverAxis("J")), "SR", ("i", "j"), ())
    assert all_axis_names(node.axes) == ("I", "J")
    assert [item.vars for item in iterated_axes(node)] == [("i",), ("j",)]
