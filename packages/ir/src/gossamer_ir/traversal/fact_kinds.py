"""The table of fact types: whether a fact is about indices, and whether it is about rows.

Passes, primitives and backends ask this table, or the fields of a fact, so that a new type is handled
wherever they need no more. What a type *means* is in tables of its printer, its parser and its checks. Tests
check that each of them covers the language.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from gossamer_ir.nodes import (
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
from gossamer_ir.traversal.fields import name_fields


class FactKind(msgspec.Struct, frozen=True):
    """What holds for every fact of a type. No entry has a default: one that is missing must not be
    mistaken for a promise."""

    orders_elements: bool
    """True if it relates an element to its index or its neighbors. A proof that uses it needs indices that
    are computed without overflow."""
    is_of_each_row: Callable[[Any], bool]
    """Returns whether the fact holds within each row (the last dimension) but not across rows, so that it is
    lost if rows are flattened into one dimension."""


def _always(_fact: Fact) -> bool:
    return True


def _never(_fact: Fact) -> bool:
    return False


def _without_indptr(fact: SortedSegments) -> bool:
    return fact.indptr is None


FACT_KINDS: dict[type[Any], FactKind] = {
    Relation: FactKind(orders_elements=False, is_of_each_row=_never),
    InRange: FactKind(orders_elements=False, is_of_each_row=_never),
    Monotone: FactKind(orders_elements=True, is_of_each_row=_always),
    HasValue: FactKind(orders_elements=True, is_of_each_row=_never),
    ProductSteps: FactKind(orders_elements=True, is_of_each_row=_never),
    SortedSegments: FactKind(orders_elements=True, is_of_each_row=_without_indptr),
    Distinct: FactKind(orders_elements=False, is_of_each_row=_never),
    PaddedSlots: FactKind(orders_elements=False, is_of_each_row=_never),
}
"""One entry for each type of fact."""


@cache
def buffer_fields(kind: type[Any]) -> tuple[str, ...]:
    """Return the fields of a type of fact that name buffers, that of its subject first.

    >>> buffer_fields(SortedSegments), buffer_fields(Relation)
    (('buffer', 'indptr'), ('left', 'right'))
    """
    names = name_fields(kind)
    return tuple(field for field in kind.__struct_fields__ if field in names)


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
