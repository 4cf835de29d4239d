"""The table of facts covers every type; each is printed, parsed and verified by its fields."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from gossamer_ir.analysis.invariants import invariant_facts
from gossamer_ir.core.build import ZERO, index, index_var
from gossamer_ir.facts.fact_kinds import (
    FACT_KINDS,
    FactKind,
    buffer_fields,
    buffers_of_fact,
    subject_of,
)
from gossamer_ir.nodes import (
    FACTS,
    BitCounts,
    Buffer,
    Const,
    Distinct,
    Expr,
    Function,
    HasValue,
    InRange,
    Module,
    Monotone,
    Name,
    Node,
    PaddedSlots,
    Param,
    ProductSteps,
    Relation,
    SortedSegments,
    Store,
)
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.traversal.fields import FIELDS
from gossamer_ir.verify import diagnostics

SAMPLES = {
    Relation: Relation("covers", "X", "Y"),
    InRange: InRange("X", index(2), index_var("n")),
    Monotone: Monotone("X"),
    HasValue: HasValue("X", index(2), index_var("n")),
    ProductSteps: ProductSteps("X", "Y", "Z"),
    SortedSegments: SortedSegments("X", "Y", unique=True),
    Distinct: Distinct("X"),
    BitCounts: BitCounts("X", "Y", index_var("n")),
    PaddedSlots: PaddedSlots("X", index_var("n")),
}
"""One fact of each type, with a value in each field."""


class Multiples(Node, frozen=True):
    """A type of fact that the language lacks: every value is a multiple of `factor`."""

    buffer: Name
    factor: Expr


def module_with(fact, *body):
    names = ("X", "Y", "Z")
    params = (*(Param(name.lower(), "handle") for name in names), Param("n", "int64"))
    buffers = tuple(Buffer(name, (index_var("n"),), "int64", name.lower()) for name in names)
    return Module("loop", (Function("f", params, body, buffers=buffers, facts=(fact,)),), "f")


def codes(module):
    return [diagnostic.code for diagnostic in diagnostics(module)]


def test_every_kind_of_fact_has_an_entry():
    assert set(FACT_KINDS) == set(FACTS) == set(SAMPLES)


@pytest.mark.parametrize("kind", FACTS, ids=lambda kind: kind.__name__)
def test_a_fact_is_parsed_as_it_is_printed(kind):
    module = module_with(SAMPLES[kind])
    assert parse_module(print_module(module)) == module
    assert codes(module) == []


def test_every_kind_of_fact_is_in_the_table_of_constructs():
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    # Relations have a row of their own there.
    samples = [fact for kind, fact in SAMPLES.items() if kind is not Relation]
    texts = [print_module(module_with(fact)) for fact in samples]
    names = [re.search(r"T\.assume\((?:T\.)?(\w+)\(", text)[1] for text in texts]
    assert [name for name in names if f"{name}(" not in readme] == []


@pytest.mark.parametrize("kind", FACTS, ids=lambda kind: kind.__name__)
def test_a_fact_names_buffers_that_exist(kind):
    for field in buffer_fields(kind):
        damaged = replace(SAMPLES[kind], **{field: "missing"})
        code = "verify.relation.name" if kind is Relation else "verify.fact.buffer"
        assert codes(module_with(damaged)) == [code]


@pytest.mark.parametrize(
    "kind", [kind for kind in FACTS if FIELDS[kind]], ids=lambda kind: kind.__name__
)
def test_an_expression_of_a_fact_is_a_size(kind):
    for field in FIELDS[kind]:
        damaged = replace(SAMPLES[kind], **{field: Const("bool", "True")})
        assert codes(module_with(damaged)) != []


@pytest.mark.parametrize("kind", FACTS, ids=lambda kind: kind.__name__)
def test_a_fact_holds_everywhere_unless_a_buffer_that_it_names_is_written(kind):
    fact = SAMPLES[kind]
    assert subject_of(fact) == "X"
    for name in "XYZ":
        (function,) = module_with(fact, Store(name, (ZERO,), ZERO)).functions
        assert (fact in invariant_facts(function)) == (name not in buffers_of_fact(fact))


def test_a_new_kind_of_fact_is_verified_by_its_fields(monkeypatch):
    fact = Multiples("X", index(4))
    assert (subject_of(fact), buffers_of_fact(fact)) == ("X", ("X",))
    assert codes(module_with(fact)) == []
    assert codes(module_with(Multiples("W", index(4)))) == ["verify.fact.buffer"]
    kind = FactKind(
        orders_elements=False,
        is_of_each_row=lambda fact: False,
        declares_unused_slots=False,
        fact_of_all_slots=lambda fact: None,
    )
    monkeypatch.setitem(FACT_KINDS, Multiples, kind)
    assert set(FACT_KINDS) != set(FACTS)
