"""Errors for facts about index arrays that do not hold.

The positions are found by `gossamer_ir.support.index_arrays`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from gossamer_backend.arguments.size_equations import Array, Scalars, evaluate_size
from gossamer_ir.errors import ArgumentError, InternalError, UnsupportedError
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
from gossamer_ir.support.counted import counted
from gossamer_ir.support.index_arrays import (
    Segments,
    first_decrease,
    first_member,
    first_outside,
    first_repeated,
    first_unsorted,
    first_wrong_product,
    first_wrong_word,
    has_value,
    segments_of,
)
from gossamer_ir.traversal.fact_index import stated_fact_index


class PassedArrays(msgspec.Struct, frozen=True):
    """Inputs of the checks of facts."""

    scalars: Scalars
    arrays: Mapping[str, Array]
    """The arrays by buffer, in the shapes of the signature."""
    names: Mapping[str, str]
    """The parameter of each buffer, which messages name."""
    pads: Mapping[str, int]
    """The value of unused slots by buffer."""
    segments: Mapping[str, SortedSegments]
    """The fact about the segments of each buffer that has one."""

    def size(self, expr: Expr) -> int:
        return evaluate_size(expr, self.scalars, arrays=self.arrays)

    def named(self, buffer: str) -> tuple[str, Array]:
        """Return the name that messages give to a buffer, and its array."""
        return self.names[buffer], self.arrays[buffer]


def require_facts(
    facts: tuple[Fact, ...],
    scalars: Scalars,
    *,
    arrays: Mapping[str, Array],
    names: Mapping[str, str],
) -> None:
    """Raise `ArgumentError` for the first fact that does not hold.

    `arrays` are by buffer and have the shapes of the signature; `names` are the names of their parameters.
    Facts about segments are checked last, since they rely on the others. Raises `InternalError` for a fact
    of a type that has no check: the program was compiled as if it held.
    """
    if unknown := {type(fact).__name__ for fact in facts if type(fact) not in FACT_CHECKS}:
        raise InternalError(f"Facts have no check: {', '.join(sorted(unknown))}.")
    index = stated_fact_index(facts)
    pads = {
        fact.buffer: evaluate_size(fact.length, scalars, arrays=arrays)
        for fact in index.of_type(PaddedSlots)
    }
    segments = {fact.buffer: fact for fact in index.of_type(SortedSegments)}
    passed = PassedArrays(scalars, arrays, names, pads, segments)
    for fact in sorted(facts, key=_turn):
        FACT_CHECKS[type(fact)](fact, passed)


def _turn(fact: Fact) -> int:
    return _RELYING.index(type(fact)) if type(fact) in _RELYING else -1


def _check_in_range(fact: InRange, passed: PassedArrays) -> None:
    low, high = passed.size(fact.low), passed.size(fact.high)
    check_range(*passed.named(fact.buffer), low=low, high=high)


def _check_monotone(fact: Monotone, passed: PassedArrays) -> None:
    check_monotone(*passed.named(fact.buffer))


def _check_has_value(fact: HasValue, passed: PassedArrays) -> None:
    at, value = passed.size(fact.index), passed.size(fact.value)
    check_value(*passed.named(fact.buffer), at=at, value=value)


def _check_product_steps(fact: ProductSteps, passed: PassedArrays) -> None:
    of = [passed.named(fact.left), passed.named(fact.right)]
    check_products(*passed.named(fact.buffer), of=of)


def _check_distinct(fact: Distinct, passed: PassedArrays) -> None:
    check_distinct(*passed.named(fact.buffer), pad=passed.pads.get(fact.buffer))


def _check_bit_counts(fact: BitCounts, passed: PassedArrays) -> None:
    (name, words), (other, offsets) = passed.named(fact.buffer), passed.named(fact.indptr)
    check_bit_counts(name, words, offsets=(other, offsets), length=passed.size(fact.length))


def _check_padded_slots(_fact: PaddedSlots, _passed: PassedArrays) -> None:
    """Every value is allowed: the fact only says which slots the other facts exclude."""


def _check_sorted_segments(fact: SortedSegments, passed: PassedArrays) -> None:
    """Check the offsets of segments first, then the order within the segments."""
    name, array = passed.named(fact.buffer)
    indptr = None
    if fact.indptr is not None:
        offsets, indptr = passed.named(fact.indptr)
        # First: offsets outside of the array would make the check of the segments itself read out of
        # bounds.
        check_range(offsets, indptr, low=0, high=array.size + 1)
    pad = passed.pads.get(fact.buffer)
    check_segments(name, array, indptr=indptr, unique=fact.unique, pad=pad)


def _check_relation(fact: Relation, passed: PassedArrays) -> None:
    """Check that each segment of one buffer is a subset of the segment of the same number of another, or
    disjoint from it; both buffers are sorted."""
    left, right = passed.segments.get(fact.left), passed.segments.get(fact.right)
    if fact.kind not in ("subset", "disjoint") or left is None or right is None:
        raise UnsupportedError(
            "backend.relation",
            f"The declared relation {fact.kind}({fact.left}, {fact.right}) cannot be checked.",
            hint="Only subset and disjoint can be checked, and both axes must be sorted.",
        )
    parts = [
        segments_of(
            passed.arrays[cut.buffer],
            None if cut.indptr is None else passed.arrays[cut.indptr],
            pad=passed.pads.get(cut.buffer),
        )
        for cut in (left, right)
    ]
    check = check_subset if fact.kind == "subset" else check_disjoint
    check(passed.names[fact.left], *parts, of=passed.names[fact.right])


FACT_CHECKS: Mapping[type, Callable[[Any, PassedArrays], None]] = {
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


def check_subset(name: str, left: Segments, right: Segments, *, of: str) -> None:
    """Raise unless each segment is a subset of the segment of the same number on the right."""
    where = first_member(left, right, is_in=False)
    if where is not None:
        raise ArgumentError(
            "kernel.subset",
            f"Element {where} of '{name}' is {left.values[where]}, which is not in its segment of "
            f"'{of}'.",
            hint="Pass index arrays of which one contains all values of the other.",
        )


def check_disjoint(name: str, left: Segments, right: Segments, *, of: str) -> None:
    """Raise unless each segment is disjoint from the segment of the same number on the right."""
    where = first_member(left, right, is_in=True)
    if where is not None:
        raise ArgumentError(
            "kernel.disjoint",
            f"Element {where} of '{name}' is {left.values[where]}, which is in its segment of '{of}', "
            "too.",
            hint="Pass index arrays that have nothing in common.",
        )


def check_range(name: str, array: Array, *, low: int, high: int) -> None:
    """Raise unless every value is in [low, high)."""
    where = first_outside(array, low=low, high=high)
    if where is not None:
        raise ArgumentError(
            "kernel.range",
            f"Element {where} of '{name}' is {array.reshape(-1)[where]}; "
            f"expected a value from {low} to {high - 1}.",
        )


def check_value(name: str, array: Array, *, at: int, value: int) -> None:
    """Raise unless the element at an index exists and has the value."""
    if has_value(array, at=at, value=value):
        return
    is_there = 0 <= at < array.size
    actual = (
        f"is {array.reshape(-1)[at]}"
        if is_there
        else f"does not exist in an array of size {array.size}"
    )
    raise ArgumentError(
        "kernel.value",
        f"Element {at} of '{name}' {actual}; expected {value}.",
        hint="Offsets lead from 0 to the number of elements.",
    )


def check_distinct(name: str, array: Array, *, pad: int | None = None) -> None:
    """Raise if a value other than padding occurs twice."""
    repeated = first_repeated(array, pad=pad)
    if repeated is not None:
        where, before = repeated
        raise ArgumentError(
            "kernel.distinct",
            f"Element {where} of '{name}' is {array.reshape(-1)[where]}, as is element {before}.",
            hint="Pass an array without duplicates.",
        )


def check_bit_counts(name: str, words: Array, *, offsets: tuple[str, Array], length: int) -> None:
    """Raise unless as many bits are set in each word as the offsets say, all below `length`."""
    other, indptr = offsets
    where = first_wrong_word(words, indptr, length=length)
    if where is None:
        return
    if indptr.size != words.size + 1:
        raise ArgumentError(
            "kernel.bits",
            f"'{other}' has {counted(indptr.size, 'element')}; expected {words.size + 1}, one more than "
            f"'{name}'.",
        )
    steps, word = int(indptr[where + 1]) - int(indptr[where]), int(words.reshape(-1)[where])
    raise ArgumentError(
        "kernel.bits",
        f"Element {where} of '{name}' is {word:#b}; expected a number with {counted(steps, 'bit')} set, "
        f"below bit {length}.",
        hint=f"The steps of '{other}' are the numbers of bits that are set.",
    )


def check_products(name: str, array: Array, *, of: Sequence[tuple[str, Array]]) -> None:
    """Raise unless each step is the product of the steps of two other arrays."""
    (left, first), (right, second) = of
    where = first_wrong_product(array, first, second)
    if where is None:
        return
    if where == 0:
        expected = f"as many as '{left}' and '{right}' have"
        actual = f"'{name}' has {counted(array.size, 'element')}"
    else:
        actual = f"Element {where} of '{name}' is {array[where]}"
        rise = " * ".join(str(int(side[where]) - int(side[where - 1])) for side in (first, second))
        expected = f"{array[where - 1]} + {rise}"
    raise ArgumentError(
        "kernel.product",
        f"{actual}; expected {expected}.",
        hint=f"Pass the prefix sums of products of the row lengths in '{left}' and '{right}'.",
    )


def check_monotone(name: str, array: Array) -> None:
    """Raise if a value is less than the one before it along the last dimension."""
    decrease = first_decrease(array)
    if decrease is not None:
        row, where = decrease
        line = array.reshape(-1, array.shape[-1])[row]
        raise ArgumentError(
            "kernel.monotone",
            f"Element {where} of '{name}' is {line[where]}, which is less than the one before "
            f"it, {line[where - 1]}.",
            hint="Pass offsets that never decrease.",
        )


def check_segments(
    name: str, array: Array, *, indptr: Array | None, unique: bool, pad: int | None = None
) -> None:
    """Raise if values decrease within a segment, or are repeated although they are unique; `pad` may be
    repeated."""
    where = first_unsorted(segments_of(array, indptr, pad=pad), unique=unique)
    if where is not None:
        raise _unsorted_error(name, array.reshape(-1), where=where)


def _unsorted_error(name: str, flat: Array, *, where: int) -> ArgumentError:
    before, value = flat[where - 1], flat[where]
    relation = "equal to" if before == value else "less than"
    return ArgumentError(
        "kernel.sorted",
        f"Element {where} of '{name}' is {value}, which is {relation} the one before it in its "
        f"segment, {before}.",
        hint="Sort each segment and combine duplicates.",
    )
