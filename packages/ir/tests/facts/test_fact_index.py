"""The index of facts: found by type and subject, weakened where slots may be unused."""

from __future__ import annotations

import pytest

from gossamer_ir.core.build import ZERO, index, index_var
from gossamer_ir.facts.fact_index import fact_index, stated_fact_index
from gossamer_ir.facts.fact_kinds import FACT_KINDS, FactKind
from gossamer_ir.nodes import (
    Distinct,
    Expr,
    HasValue,
    InRange,
    Monotone,
    Name,
    Node,
    PaddedSlots,
    ProductSteps,
    Relation,
    SortedSegments,
)

PADDED = PaddedSlots("X", index_var("n"))
SORTED = SortedSegments("X", "P", unique=True)


class Tombstones(Node, frozen=True):
    """A type of fact that the language lacks: a slot that holds `value` was deleted."""

    buffer: Name
    value: Expr


def test_facts_are_found_by_type_and_subject():
    narrow, wide = InRange("X", ZERO, index(4)), InRange("X", ZERO, index(9))
    facts = fact_index([narrow, Monotone("Y"), wide])
    assert facts.about("X", InRange) == (narrow, wide) == facts.facts_of_type(InRange)
    assert facts.last("X", InRange) == wide
    assert facts.holds("Y", Monotone)


def test_there_may_be_no_fact():
    facts = fact_index([Monotone("Y")])
    assert facts.about("Y", InRange) == facts.facts_of_type(InRange) == ()
    assert facts.last("Y", InRange) is None
    assert not facts.holds("X", Monotone)


def test_unused_slots_repeat_a_value():
    facts = fact_index([SORTED, Distinct("X"), PADDED])
    assert facts.about("X", SortedSegments) == (SortedSegments("X", "P", unique=False),)
    assert not facts.holds("X", Distinct)
    assert facts.holds("X", PaddedSlots)


@pytest.mark.parametrize("padded", ["X", "Y"])
def test_a_relation_is_about_elements_of_both_sides(padded):
    subset = Relation("subset", "X", "Y")
    assert fact_index([subset]).about("X", Relation) == (subset,)
    assert fact_index([subset, PaddedSlots(padded, index(9))]).facts_of_type(Relation) == ()


@pytest.mark.parametrize(
    "fact",
    [
        InRange("X", ZERO, index(9)),
        Monotone("X"),
        HasValue("X", ZERO, ZERO),
        ProductSteps("X", "Y", "Z"),
    ],
    ids=lambda fact: type(fact).__name__,
)
def test_a_fact_about_every_slot_is_not_weakened(fact):
    assert fact_index([fact, PADDED]).facts_of_type(type(fact)) == (fact,)


def test_other_buffers_are_not_weakened():
    assert fact_index([Distinct("Y"), PADDED]).holds("Y", Distinct)


def test_checks_see_facts_as_they_are_stated():
    assert stated_fact_index((SORTED, PADDED)).about("X", SortedSegments) == (SORTED,)


def test_a_new_type_that_declares_unused_slots_weakens_by_its_entry(monkeypatch):
    kind = FactKind(
        orders_elements=False,
        is_of_each_row=lambda fact: False,
        declares_unused_slots=True,
        fact_of_all_slots=lambda fact: fact,
    )
    monkeypatch.setitem(FACT_KINDS, Tombstones, kind)
    assert not fact_index([Distinct("X"), Tombstones("X", ZERO)]).holds("X", Distinct)
