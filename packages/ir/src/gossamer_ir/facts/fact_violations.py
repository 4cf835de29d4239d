"""The first of some facts that arrays violate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from gossamer_ir.errors import InternalError
from gossamer_ir.facts.array_violations import (
    NamedArray,
    Violation,
    bits_violation,
    disjoint_violation,
    distinct_violation,
    monotone_violation,
    order_violation,
    product_violation,
    range_violation,
    subset_violation,
    value_violation,
)
from gossamer_ir.facts.fact_index import FactIndex, stated_fact_index
from gossamer_ir.facts.index_arrays import Segments, segments_of
from gossamer_ir.nodes import (
    BitCounts,
    Distinct,
    Expr,
    Fact,
    HasValue,
    InRange,
    Monotone,
    PaddedSlots,
    ProductSteps,
    Relation,
    SortedSegments,
)
from gossamer_support.arrays import Array


class FactOperands(msgspec.Struct, frozen=True):
    """The arrays that facts are about, and the values of sizes.

    `arrays` are by buffer, in the shapes of the buffers; `names` are those that sentences give to the
    buffers; `size` evaluates the expressions in facts.
    """

    arrays: Mapping[str, Array]
    names: Mapping[str, str]
    size: Callable[[Expr], int]

    def named_array(self, buffer_name: str) -> NamedArray:
        """Return an array, after its name."""
        return self.names[buffer_name], self.arrays[buffer_name]

    def pad(self, buffer_name: str, index: FactIndex) -> int | None:
        """Return the value of the unused slots of a buffer; None if it has none."""
        padded = index.last(buffer_name, PaddedSlots)
        return None if padded is None else self.size(padded.length)


FactCheck: TypeAlias = "Callable[[Any, FactOperands, FactIndex], Violation | None]"
"""Takes a fact, the arrays, and the index of all facts."""


def first_violation(facts: tuple[Fact, ...], operands: FactOperands) -> Violation | None:
    """Return a violation of the first fact that does not hold, or None.

    Facts about segments are checked last, since they rely on the others. Raises `InternalError` for a fact
    of a type that has no check.

    >>> import numpy as np
    >>> operands = FactOperands({"P": np.array([0, 2, 1])}, {"P": "indptr"}, lambda size: 0)
    >>> first_violation((Monotone("P"),), operands).sentence
    "Element 2 of 'indptr' is 1, which is less than the one before it, 2."
    """
    in_turn = _in_turn(facts)
    index = stated_fact_index(facts)
    for check, fact in in_turn:
        violation = check(fact, operands, index)
        if violation is not None:
            return violation
    return None


# Cached, because operators check small arrays at each call.
@lru_cache(maxsize=64)
def _in_turn(facts: tuple[Fact, ...]) -> tuple[tuple[FactCheck, Fact], ...]:
    """Return the facts with their checks, those last that rely on the others."""
    require_checks(facts)
    relying: dict[type[Any], int] = {kind: turn for turn, kind in enumerate(_RELYING)}
    in_turn = sorted(facts, key=lambda fact: relying.get(type(fact), -1))
    return tuple((FACT_CHECKS[type(fact)], fact) for fact in in_turn)


def require_checks(facts: tuple[Fact, ...]) -> None:
    """Raise `InternalError` for a fact of a type that has no check: a program was compiled as if it held."""
    if unknown := {type(fact).__name__ for fact in facts if type(fact) not in FACT_CHECKS}:
        raise InternalError(f"Facts have no check: {', '.join(sorted(unknown))}.")


def _check_in_range(fact: InRange, operands: FactOperands, _index: FactIndex) -> Violation | None:
    low, high = operands.size(fact.low), operands.size(fact.high)
    return range_violation(operands.named_array(fact.buffer), low=low, high=high)


def _check_monotone(fact: Monotone, operands: FactOperands, _index: FactIndex) -> Violation | None:
    return monotone_violation(operands.named_array(fact.buffer))


def _check_has_value(fact: HasValue, operands: FactOperands, _index: FactIndex) -> Violation | None:
    at, value = operands.size(fact.index), operands.size(fact.value)
    return value_violation(operands.named_array(fact.buffer), at=at, value=value)


def _check_product_steps(
    fact: ProductSteps, operands: FactOperands, _index: FactIndex
) -> Violation | None:
    left, right = operands.named_array(fact.left), operands.named_array(fact.right)
    return product_violation(operands.named_array(fact.buffer), left=left, right=right)


def _check_distinct(fact: Distinct, operands: FactOperands, index: FactIndex) -> Violation | None:
    return distinct_violation(
        operands.named_array(fact.buffer), pad=operands.pad(fact.buffer, index)
    )


def _check_bit_counts(
    fact: BitCounts, operands: FactOperands, _index: FactIndex
) -> Violation | None:
    words, offsets = operands.named_array(fact.buffer), operands.named_array(fact.indptr)
    return bits_violation(words, offsets, length=operands.size(fact.length))


def _check_padded_slots(_fact: PaddedSlots, _operands: FactOperands, _index: FactIndex) -> None:
    """Accept every value: the fact only says which slots the other facts exclude."""


def _check_sorted_segments(
    fact: SortedSegments, operands: FactOperands, index: FactIndex
) -> Violation | None:
    """Check the offsets of segments first, then the order within the segments."""
    name, array = operands.named_array(fact.buffer)
    if fact.indptr is not None:
        # First: offsets outside of the array would make the check of the segments itself read out of bounds.
        outside = range_violation(operands.named_array(fact.indptr), low=0, high=array.size + 1)
        if outside is not None:
            return outside
    return order_violation(name, _segments(fact, operands, index), unique=fact.unique)


def _check_relation(fact: Relation, operands: FactOperands, index: FactIndex) -> Violation | None:
    """Check that each segment of one buffer is a subset of the segment of the same number of another, or
    disjoint from it; both buffers are sorted."""
    left, right = (index.last(buffer, SortedSegments) for buffer in (fact.left, fact.right))
    if not can_check_relation(fact, index) or left is None or right is None:
        raise InternalError(f"The relation {fact.kind}({fact.left}, {fact.right}) has no check.")
    check = subset_violation if fact.kind == "subset" else disjoint_violation
    sides = (_segments(left, operands, index), _segments(right, operands, index))
    return check(operands.names[fact.left], *sides, of=operands.names[fact.right])


def can_check_relation(fact: Relation, index: FactIndex) -> bool:
    """Return whether a relation is one of sets, and facts say that both its buffers are sorted."""
    sides = (fact.left, fact.right)
    return fact.kind in ("subset", "disjoint") and all(
        index.holds(side, SortedSegments) for side in sides
    )


def _segments(fact: SortedSegments, operands: FactOperands, index: FactIndex) -> Segments:
    indptr = None if fact.indptr is None else operands.arrays[fact.indptr]
    return segments_of(operands.arrays[fact.buffer], indptr, pad=operands.pad(fact.buffer, index))


FACT_CHECKS: Mapping[type, FactCheck] = {
    InRange: _check_in_range,
    Monotone: _check_monotone,
    HasValue: _check_has_value,
    ProductSteps: _check_product_steps,
    Distinct: _check_distinct,
    BitCounts: _check_bit_counts,
    PaddedSlots: _check_padded_slots,
    SortedSegments: _check_sorted_segments,
    Relation: _check_relation,
}
"""One entry for each type of fact."""
_RELYING = (SortedSegments, Relation)
"""Types of facts whose checks rely on those of all types before them, and so come last, in this order."""
