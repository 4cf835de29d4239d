"""Errors for facts about index arrays that do not hold.

The positions are found by `gossamer_ir.support.index_arrays`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gossamer_backend.arguments.size_equations import Array, Scalars, evaluate
from gossamer_ir.errors import ArgumentError, UnsupportedError
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
from gossamer_ir.support.counted import counted
from gossamer_ir.support.index_arrays import (
    Segments,
    first_decrease,
    first_member,
    first_outside,
    first_repeated,
    first_unsorted,
    first_wrong_product,
    has_value,
    segments_of,
)


def buffer_of(fact: Fact) -> str:
    """Return the buffer that a fact is about."""
    return fact.left if isinstance(fact, Relation) else fact.buffer


def require_facts(
    facts: tuple[Fact, ...],
    scalars: Scalars,
    *,
    arrays: Mapping[str, Array],
    names: Mapping[str, str],
) -> None:
    """Raise `ArgumentError` for the first fact that does not hold.

    `arrays` are by buffer and have the shapes of the signature; `names` are the names of their parameters.
    Facts about segments are checked last, since they rely on the others.
    """
    pads = {
        fact.buffer: evaluate(fact.length, scalars, arrays=arrays)
        for fact in facts
        if isinstance(fact, PaddedSlots)
    }
    for fact in facts:
        _check_values(fact, scalars, arrays=arrays, names=names)
        if isinstance(fact, Distinct):
            check_distinct(names[fact.buffer], arrays[fact.buffer], pad=pads.get(fact.buffer))
    for fact in facts:
        if isinstance(fact, SortedSegments):
            _check_order(fact, arrays=arrays, names=names, pad=pads.get(fact.buffer))
    cuts = {fact.buffer: fact for fact in facts if isinstance(fact, SortedSegments)}
    for fact in facts:
        if isinstance(fact, Relation):
            _check_relation(fact, cuts, arrays=arrays, names=names, pads=pads)


def _check_values(
    fact: Fact, scalars: Scalars, *, arrays: Mapping[str, Array], names: Mapping[str, str]
) -> None:
    """Check a fact about single values or neighbors."""
    match fact:
        case InRange():
            low = evaluate(fact.low, scalars, arrays=arrays)
            high = evaluate(fact.high, scalars, arrays=arrays)
            check_range(names[fact.buffer], arrays[fact.buffer], low=low, high=high)
        case Monotone():
            check_monotone(names[fact.buffer], arrays[fact.buffer])
        case HasValue():
            at = evaluate(fact.index, scalars, arrays=arrays)
            value = evaluate(fact.value, scalars, arrays=arrays)
            check_value(names[fact.buffer], arrays[fact.buffer], at=at, value=value)
        case ProductSteps():
            of = [(names[name], arrays[name]) for name in (fact.left, fact.right)]
            check_products(names[fact.buffer], arrays[fact.buffer], of=of)


def _check_relation(
    fact: Relation,
    cuts: Mapping[str, SortedSegments],
    *,
    arrays: Mapping[str, Array],
    names: Mapping[str, str],
    pads: Mapping[str, int],
) -> None:
    """Check that each segment of one buffer is a subset of the segment of the same number of another, or
    disjoint from it; both buffers are sorted."""
    left, right = cuts.get(fact.left), cuts.get(fact.right)
    if fact.kind not in ("subset", "disjoint") or left is None or right is None:
        raise UnsupportedError(
            "backend.relation",
            f"The declared relation {fact.kind}({fact.left}, {fact.right}) cannot be checked.",
            hint="Only subset and disjoint can be checked, and both axes must be sorted.",
        )
    parts = [
        segments_of(
            arrays[cut.buffer],
            None if cut.indptr is None else arrays[cut.indptr],
            pad=pads.get(cut.buffer),
        )
        for cut in (left, right)
    ]
    check = check_subset if fact.kind == "subset" else check_disjoint
    check(names[fact.left], *parts, of=names[fact.right])


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


def _check_order(
    fact: SortedSegments,
    *,
    arrays: Mapping[str, Array],
    names: Mapping[str, str],
    pad: int | None,
) -> None:
    """Check the offsets of segments first, then the order within the segments."""
    array, indptr = arrays[fact.buffer], None
    if fact.indptr is not None:
        indptr = arrays[fact.indptr]
        # First: offsets outside of the array would make the
        # check of the segments itself read out of bounds.
        check_range(names[fact.indptr], indptr, low=0, high=array.size + 1)
    check_segments(names[fact.buffer], array, indptr=indptr, unique=fact.unique, pad=pad)


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
