"""The table of fact types: what a fact says about indices, about rows and about unused slots.

Passes, primitives and backends use this table, the fields of a fact, or the index of facts (`fact_index.py`),
so that a new type is handled wherever they need no more. The meaning of a type is in tables of its printer,
its parser and its checks. Tests check that each of them covers the language.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from gossamer_ir.nodes import (
    BitCounts,
    Distinct,
    Fact,
    HasValue,
    InRange,
    Monotone,
    PaddedSlots,
    ProductSteps,
    Relation,
    SortedSegments,
)
from gossamer_ir.traversal.fields import NAME_FIELDS


class FactKind(msgspec.Struct, frozen=True):
    """Properties of every fact of a type. No entry has a default: one that is missing must not be
    mistaken for a promise."""

    orders_elements: bool
    """True if it relates an element to its index or its neighbors. A proof that uses it needs indices that
    are computed without overflow."""
    is_of_each_row: Callable[[Any], bool]
    """Returns whether the fact holds within each row (the last dimension) but not across rows, so that it is
    lost if rows are flattened into one dimension."""
    declares_unused_slots: bool
    """True if it says that slots of its subject may be unused. Other facts about the subject may then hold of
    its elements only."""
    fact_of_all_slots: Callable[[Any], Fact | None]
    """Returns what the fact says of every slot of its buffers if some may be unused: itself, a weaker fact,
    or None."""


def _always(_fact: Fact) -> bool:
    return True


def _never(_fact: Fact) -> bool:
    return False


def _itself(fact: Fact) -> Fact:
    return fact


def _nothing(_fact: Fact) -> None:
    return None


def _not_unique(fact: SortedSegments) -> SortedSegments:
    """Unused slots all hold `length`, at the end of a segment: J = [0, 2, 3, 3]."""
    return replace(fact, unique=False)


def _without_indptr(fact: SortedSegments) -> bool:
    return fact.indptr is None


FACT_KINDS: dict[type[Any], FactKind] = {
    Relation: FactKind(
        orders_elements=False,
        is_of_each_row=_never,
        declares_unused_slots=False,
        fact_of_all_slots=_nothing,
    ),
    InRange: FactKind(
        orders_elements=False,
        is_of_each_row=_never,
        declares_unused_slots=False,
        fact_of_all_slots=_itself,
    ),
    Monotone: FactKind(
        orders_elements=True,
        # A row may begin below the end of the row before it.
        is_of_each_row=_always,
        declares_unused_slots=False,
        fact_of_all_slots=_itself,
    ),
    HasValue: FactKind(
        orders_elements=True,
        is_of_each_row=_never,
        declares_unused_slots=False,
        fact_of_all_slots=_itself,
    ),
    ProductSteps: FactKind(
        orders_elements=True,
        is_of_each_row=_never,
        declares_unused_slots=False,
        fact_of_all_slots=_itself,
    ),
    SortedSegments: FactKind(
        orders_elements=True,
        is_of_each_row=_without_indptr,
        declares_unused_slots=False,
        fact_of_all_slots=_not_unique,
    ),
    Distinct: FactKind(
        orders_elements=False,
        is_of_each_row=_never,
        declares_unused_slots=False,
        # Unused slots have the same value.
        fact_of_all_slots=_nothing,
    ),
    BitCounts: FactKind(
        orders_elements=True,
        is_of_each_row=_never,
        declares_unused_slots=False,
        fact_of_all_slots=_itself,
    ),
    PaddedSlots: FactKind(
        orders_elements=False,
        is_of_each_row=_never,
        declares_unused_slots=True,
        fact_of_all_slots=_itself,
    ),
}
"""One entry for each type of fact."""


def buffer_fields(kind: type[Any]) -> tuple[str, ...]:
    """Return the fields of a type of fact that name buffers, that of its subject first.

    >>> buffer_fields(SortedSegments), buffer_fields(Relation)
    (('buffer', 'indptr'), ('left', 'right'))
    """
    return NAME_FIELDS[kind]


def buffers_of_fact(fact: Fact) -> tuple[str, ...]:
    """Return the buffers that a fact names, its subject first; of a relation of axes, the axes.

    >>> buffers_of_fact(SortedSegments("J_indices", None, unique=True))
    ('J_indices',)
    """
    named = [getattr(fact, field) for field in buffer_fields(type(fact))]
    return tuple([name for name in named if name is not None])


def subject_of(fact: Fact) -> str:
    """Return the buffer that a fact is about: the first one that it names.

    >>> subject_of(Monotone("P")), subject_of(Relation("subset", "J1", "J2"))
    ('P', 'J1')
    """
    return buffers_of_fact(fact)[0]
