"""Checks of what a kernel relies on about the contents of index arrays.

All read an array in pieces that fit a cache, and look for the culprit only when something is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gossamer_backend.arguments.sizes import Array, Scalars, evaluate
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

PIECE = 1 << 16
SEGMENTS = 1 << 14
LONGEST_LIST = 8
"""Numbers that a list has for each value that is crossed off, at most."""
KEYS, PAD = 1 << 62, -1
"""Values of segments are told apart by fewer numbers than these; padding by this one."""

FactChecker: TypeAlias = Callable[[Sequence[Fact], Scalars, Mapping[str, Array]], bool]
"""Whether facts are found to hold, faster than here; False also where that cannot be told. The arrays
are by the name of the buffer."""


class Segments(NamedTuple):
    """Values, where each of their segments begins (and the last one ends), and what is none of them."""

    values: Array
    starts: Array
    pad: int | None = None


def buffer_of(fact: Fact) -> str:
    """The buffer that a fact is about."""
    return fact.left if isinstance(fact, Relation) else fact.buffer


def check_facts(
    facts: tuple[Fact, ...],
    scalars: Scalars,
    *,
    arrays: Mapping[str, Array],
    names: Mapping[str, str],
) -> None:
    """Raises `ArgumentError` for the first fact that does not hold.

    `arrays` are by the name of the buffer, of the shapes the signature says; `names` are what the
    caller calls them. Facts about segments come last, since they rely on the others.
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
    """What a fact says about values one by one, or about neighbours."""
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
    """A segment of one buffer is a subset of that of the same number in another, or has no value of
    it; the values of both rise."""
    left, right = cuts.get(fact.left), cuts.get(fact.right)
    if fact.kind not in ("subset", "disjoint") or left is None or right is None:
        raise UnsupportedError(
            "backend.relation",
            f"The declared relation {fact.kind}({fact.left}, {fact.right}) cannot be checked.",
            hint="A subset and a disjoint set can, of two axes that are sorted.",
        )
    parts = [
        _segments(
            arrays[found.buffer],
            None if found.indptr is None else arrays[found.indptr],
            pad=pads.get(found.buffer),
        )
        for found in (left, right)
    ]
    check = check_subset if fact.kind == "subset" else check_disjoint
    check(names[fact.left], *parts, of=names[fact.right])


def check_subset(name: str, left: Segments, right: Segments, *, of: str) -> None:
    """The values of each segment are among those of the segment of the same number of other values."""
    where = _first_that(left, right, is_in=False)
    if where is not None:
        raise ArgumentError(
            "kernel.subset",
            f"Element {where} of '{name}' is {left.values[where]}, which is not in its segment of "
            f"'{of}'.",
            hint="Pass index arrays of which the one holds all of the other.",
        )


def check_disjoint(name: str, left: Segments, right: Segments, *, of: str) -> None:
    """No value of a segment is among those of the segment of the same number of other values."""
    where = _first_that(left, right, is_in=True)
    if where is not None:
        raise ArgumentError(
            "kernel.disjoint",
            f"Element {where} of '{name}' is {left.values[where]}, which is in its segment of '{of}', "
            "too.",
            hint="Pass index arrays that have nothing in common.",
        )


def _first_that(left: Segments, right: Segments, *, is_in: bool) -> int | None:
    """The first position whose value is (or is not) in the segment of the same number."""
    least = min(int(side.values.min(initial=0)) for side in (left, right))
    span = max(int(side.values.max(initial=0)) for side in (left, right)) - least + 1
    count = max(min(SEGMENTS, KEYS // span), 1)
    for low in range(0, left.starts.size - 1, count):
        mine, theirs = (
            _keys(side, range(low, low + count), least=least, span=span) for side in (left, right)
        )
        found = np.isin(mine, theirs[theirs != PAD], invert=not is_in) & (mine != PAD)
        if found.any():
            return int(left.starts[low]) + int(found.argmax())
    return None


def _keys(of: Segments, segments: range, *, least: int, span: int) -> Array:
    """A number for each value of some segments, the same for equal values of one segment; `PAD` for
    what is no value."""
    starts = of.starts[segments.start : segments.stop + 1]
    if starts.size < 2:
        return np.empty(0, np.int64)
    values = of.values[starts[0] : starts[-1]].astype(np.int64)
    keys = np.repeat(np.arange(starts.size - 1), np.diff(starts)) * span + (values - least)
    return keys if of.pad is None else np.where(values == of.pad, PAD, keys)


def _check_order(
    fact: SortedSegments,
    *,
    arrays: Mapping[str, Array],
    names: Mapping[str, str],
    pad: int | None,
) -> None:
    """The segments of a buffer, after what says where they lie."""
    array, indptr = arrays[fact.buffer], None
    if fact.indptr is not None:
        indptr = arrays[fact.indptr]
        check_range(names[fact.indptr], indptr, low=0, high=array.size + 1)
    check_segments(names[fact.buffer], array, indptr=indptr, unique=fact.unique, pad=pad)


def check_range(name: str, array: Array, *, low: int, high: int) -> None:
    """Every value lies in [low, high)."""
    flat = array.reshape(-1)
    if not flat.size:
        return
    if low == 0 and flat.dtype.kind == "i":
        # Negative values are large as unsigned ones: one pass instead of two.
        if int(flat.view(f"u{flat.dtype.itemsize}").max()) < high:
            return
    elif flat.min().item() >= low and flat.max().item() < high:
        return
    where = _first(flat, lambda piece: ~((piece >= low) & (piece < high)))
    raise ArgumentError(
        "kernel.range",
        f"Element {where} of '{name}' is {flat[where]}, expected a value from {low} to {high - 1}.",
    )


def check_value(name: str, array: Array, *, at: int, value: int) -> None:
    """There is an element at an index, and it is a value."""
    if has_value(array, at=at, value=value):
        return
    is_there = 0 <= at < array.size
    found = f"is {array.reshape(-1)[at]}" if is_there else f"is none of {array.size}"
    raise ArgumentError(
        "kernel.value",
        f"Element {at} of '{name}' {found}, expected {value}.",
        hint="Offsets lead from 0 to the number of elements.",
    )


def check_distinct(name: str, array: Array, *, pad: int | None = None) -> None:
    """No value is there twice, but for padding."""
    if is_distinct(array, pad=pad):
        return
    flat = array.reshape(-1)
    _, first = np.unique(flat, return_index=True)
    is_again = np.ones(flat.size, dtype=np.bool_)
    is_again[first] = False
    if pad is not None:
        is_again &= flat != pad
    where = int(is_again.argmax())
    before = int((flat == flat[where]).argmax())
    raise ArgumentError(
        "kernel.distinct",
        f"Element {where} of '{name}' is {flat[where]}, as element {before} is.",
        hint="Pass an array in which each value is there once.",
    )


def is_distinct(array: Array, *, pad: int | None = None) -> bool:
    """Whether no value is there twice, but for padding. Values in a small range, such as those of a
    permutation, are crossed off a list; others are sorted."""
    flat = array.reshape(-1)
    values = flat if pad is None else flat[flat != pad]
    if values.size < 2:
        return True
    is_small = values.dtype.kind in "iu" and values.dtype != np.uint64  # fits int64
    least, most = (int(values.min()), int(values.max())) if is_small else (0, 0)
    if not is_small or most - least >= LONGEST_LIST * values.size:
        return bool(np.unique(values).size == values.size)
    is_there = np.zeros(most - least + 1, dtype=np.bool_)
    for low in range(0, values.size, PIECE):
        piece = values[low : low + PIECE]
        is_there[piece.astype(np.int64) - least if least else piece] = True
    return int(np.count_nonzero(is_there)) == values.size


def has_value(array: Array, *, at: int, value: int) -> bool:
    """Whether there is an element at an index, and it is a value."""
    return 0 <= at < array.size and bool(array.reshape(-1)[at] == value)


def check_products(name: str, array: Array, *, of: Sequence[tuple[str, Array]]) -> None:
    """Each step is the product of the steps of two others."""
    (left, first), (right, second) = of
    where = first_wrong_product(array, first, second)
    if where is None:
        return
    if where == 0:
        expected = f"as many elements as '{left}' and '{right}' have"
        found = f"'{name}' has {array.size} elements"
    else:
        found = f"Element {where} of '{name}' is {array[where]}"
        rise = " * ".join(str(int(side[where]) - int(side[where - 1])) for side in (first, second))
        expected = f"{array[where - 1]} + {rise}, the lengths by '{left}' and '{right}'"
    raise ArgumentError(
        "kernel.product",
        f"{found}, expected {expected}.",
        hint="Offsets are the prefix sums of the products of lengths.",
    )


def first_wrong_product(array: Array, left: Array, right: Array) -> int | None:
    """The first element that does not follow the one before it by the product of the steps of two
    others; 0 where these have another size. No product wraps around unnoticed."""
    if not array.shape == left.shape == right.shape:
        return 0
    for low in range(0, array.size - 1, PIECE):
        step, first, second = (
            _steps(found[low : low + PIECE + 1]) for found in (array, left, right)
        )
        size = first.astype(np.float64) * second.astype(np.float64)
        wrong = (step != first * second) | (np.abs(size) >= 2.0**62)
        if wrong.any():
            return low + 1 + int(wrong.argmax())
    return None


def _steps(array: Array) -> Array:
    wide = array.astype(np.int64)
    return wide[1:] - wide[:-1]


def check_monotone(name: str, array: Array) -> None:
    """The values never decrease along the last dimension."""
    rows = _rows(array)
    for row in range(rows.shape[0]):
        line = rows[row]
        where = _first_pair(line, np.less)
        if where is not None:
            raise ArgumentError(
                "kernel.monotone",
                f"Element {where} of '{name}' is {line[where]}, which is less than the one before "
                f"it, {line[where - 1]}.",
                hint="Pass offsets that never decrease.",
            )


def check_segments(
    name: str, array: Array, *, indptr: Array | None, unique: bool, pad: int | None = None
) -> None:
    """Within each segment the values never decrease, or increase where they are unique; `pad` may
    be repeated."""
    compare = np.less_equal if unique else np.less
    flat, starts, _ = _segments(array, indptr)
    begin, end = (int(starts[0]), int(starts[-1])) if starts.size else (0, 0)
    is_start: np.ndarray[Any, np.dtype[np.bool_]] | None = None
    for low in range(begin, end - 1, PIECE):
        piece = flat[low : min(low + PIECE + 1, end)]
        bad = compare(piece[1:], piece[:-1])
        if not bad.any():
            continue
        if is_start is None:
            is_start = np.zeros(flat.size + 1, dtype=np.bool_)
            is_start[starts] = True
        bad &= ~is_start[low + 1 : low + piece.size]
        if pad is not None:
            bad &= (piece[1:] != pad) | (piece[:-1] != pad)
        if bad.any():
            raise _unsorted(name, flat, where=low + 1 + int(bad.argmax()))


def _segments(array: Array, indptr: Array | None, *, pad: int | None = None) -> Segments:
    if indptr is not None:
        return Segments(array.reshape(-1), indptr.reshape(-1), pad)
    width = array.shape[-1] if array.ndim else 1
    count = array.size // width if width else 0
    return Segments(array.reshape(-1), np.arange(count + 1, dtype=np.int64) * width, pad)


def _unsorted(name: str, flat: Array, *, where: int) -> ArgumentError:
    before, value = flat[where - 1], flat[where]
    relation = "equal to" if before == value else "less than"
    return ArgumentError(
        "kernel.sorted",
        f"Element {where} of '{name}' is {value}, which is {relation} the one before it in its "
        f"segment, {before}.",
        hint="Sort each segment and combine duplicates.",
    )


def _rows(array: Array) -> Array:
    if array.ndim <= 1:
        return array.reshape(1, -1)
    return array.reshape(-1, array.shape[-1]) if array.size else array.reshape(0, 0)


def _first(flat: Array, is_wrong: Callable[[Array], Array]) -> int:
    for low in range(0, flat.size, PIECE):
        wrong = is_wrong(flat[low : low + PIECE])
        if wrong.any():
            return low + int(wrong.argmax())
    return -1


def _first_pair(line: Array, compare: Callable[[Array, Array], Array]) -> int | None:
    for low in range(0, line.size - 1, PIECE):
        piece = line[low : low + PIECE + 1]
        wrong = compare(piece[1:], piece[:-1])
        if wrong.any():
            return low + 1 + int(wrong.argmax())
    return None
