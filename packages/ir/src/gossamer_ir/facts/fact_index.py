"""An index of facts: what holds of the slots of a buffer.

Analyses, passes, primitives and checks of arrays ask the index, and never for the type of a fact
(`tests/recipes/test_nodes.py`), so that none of them can overlook a fact that weakens others.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, TypeVar

from gossamer_ir.facts.fact_kinds import FACT_KINDS, buffers_of_fact, subject_of
from gossamer_ir.nodes import Fact

F = TypeVar("F")


class FactIndex:
    """Facts by their type and their subject, in the order in which they are given."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._by_type: dict[type[Any], tuple[Any, ...]] = {}
        self._by_subject: dict[tuple[str, type[Any]], tuple[Any, ...]] = {}
        for fact in facts:
            kind, subject = type(fact), subject_of(fact)
            self._by_type[kind] = (*self.facts_of_type(kind), fact)
            self._by_subject[subject, kind] = (*self.about(subject, kind), fact)

    def facts_of_type(self, kind: type[F]) -> tuple[F, ...]:
        """Return the facts of a type, of all buffers."""
        return self._by_type.get(kind, ())

    def about(self, buffer_name: str, kind: type[F]) -> tuple[F, ...]:
        """Return the facts of a type about one buffer."""
        return self._by_subject.get((buffer_name, kind), ())

    def last(self, buffer_name: str, kind: type[F]) -> F | None:
        """Return the last fact of a type about a buffer, or None."""
        facts = self.about(buffer_name, kind)
        return facts[-1] if facts else None

    def holds(self, buffer_name: str, kind: type[Any]) -> bool:
        """Return whether there is a fact of a type about a buffer."""
        return (buffer_name, kind) in self._by_subject


def fact_index(facts: Iterable[Fact]) -> FactIndex:
    """Return the index of what holds of every slot of the buffers.

    A slot may be unused (`PaddedSlots`). A fact that is stated of elements only is replaced by what it
    says of all slots (`FactKind.fact_of_all_slots`), or left out.

    >>> from gossamer_ir.core.build import index
    >>> from gossamer_ir.nodes import Distinct, PaddedSlots, SortedSegments
    >>> facts = [SortedSegments("J", None, unique=True), Distinct("J")]
    >>> fact_index(facts).holds("J", Distinct)
    True
    >>> padded = fact_index([*facts, PaddedSlots("J", index(9))])
    >>> padded.holds("J", Distinct), padded.about("J", SortedSegments)
    (False, (SortedSegments(buffer='J', indptr=None, unique=False),))
    """
    return _index_of_slots(tuple(facts))


@lru_cache(maxsize=64)
def stated_fact_index(facts: tuple[Fact, ...]) -> FactIndex:
    """Return the index of facts as they are stated, for code that checks or translates them."""
    return FactIndex(facts)


# Memoized because many provers are created for one function, all with the same facts.
@lru_cache(maxsize=64)
def _index_of_slots(facts: tuple[Fact, ...]) -> FactIndex:
    partly_unused = {
        subject_of(fact) for fact in facts if FACT_KINDS[type(fact)].declares_unused_slots
    }
    return FactIndex(
        held for fact in facts if (held := _weaken_to_every_slot(fact, partly_unused)) is not None
    )


def _weaken_to_every_slot(fact: Fact, partly_unused: set[str]) -> Fact | None:
    """Return the fact that holds for every slot, None if there is none."""
    # A fact about two buffers is also weakened by the unused slots of the second.
    if partly_unused.isdisjoint(buffers_of_fact(fact)):
        return fact
    return FACT_KINDS[type(fact)].fact_of_all_slots(fact)
