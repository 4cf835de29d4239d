"""Finds violations of facts about index arrays: bounds, order, distinct values, relations.

Packages that check index arrays search for violations here and report them in their own words. Each
function reads an array in chunks that fit a cache, and computes the position only if there is a violation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gossamer_ir.nodes import Fact
from gossamer_support.arrays import Array

CHUNK_ELEMENTS = 1 << 16
"""Elements that are read at once."""
SEGMENTS = 1 << 14
"""Segments that are compared with those of another array at once."""
MAX_LIST_LENGTH = 8
"""The largest number of marks for each value, where values are marked as seen in a list of all."""
TESTED_BYTES = 128
"""Bytes of the vectors in which generated programs test an array: two registers or more, to amortize the
overhead of the loop over more elements. Twice as many take a quarter longer to compile, and run as fast."""
KEYS, PAD = 1 << 62, -1
"""The keys of the values in a few segments are below `KEYS`; `PAD` is the key of padding."""

FactChecker: TypeAlias = Callable[
    [Sequence[Fact], Mapping[str, int | float | bool], Mapping[str, Any]], bool
]
"""Returns True if it finds, faster than the functions here, that facts hold, given the scalars and the arrays
by buffer; False also if it cannot decide. Arrays in the memory of another device are given as views, which
have a shape and a dtype, but no elements."""


class Segments(NamedTuple):
    """Values, the offsets of their segments (the last one is the end), and the value that is padding."""

    values: Array
    starts: Array
    pad: int | None = None


def segments_of(array: Array, indptr: Array | None, *, pad: int | None = None) -> Segments:
    """Return the segments that offsets cut an array into; without offsets, its rows.

    >>> segments_of(np.zeros((2, 3)), None).starts.tolist()
    [0, 3, 6]
    """
    if indptr is not None:
        return Segments(array.reshape(-1), indptr.reshape(-1), pad)
    width = array.shape[-1] if array.ndim else 1
    count = array.size // width if width else 0
    return Segments(array.reshape(-1), np.arange(count + 1, dtype=np.int64) * width, pad)


def first_outside(array: Array, *, low: int, high: int) -> int | None:
    """Return the position of the first value that is not in [low, high), or None.

    >>> first_outside(np.array([0, 5, 2]), low=0, high=3)
    1
    """
    flat = array.reshape(-1)
    if not flat.size:
        return None
    if low == 0 and flat.dtype.kind == "i":
        # Negative values are large as unsigned ones: one pass instead of two.
        if int(flat.view(f"u{flat.dtype.itemsize}").max()) < high:
            return None
    elif flat.min().item() >= low and flat.max().item() < high:
        return None
    # The slow search runs only for arrays that are known to have a violation.
    for start in range(0, flat.size, CHUNK_ELEMENTS):
        chunk = flat[start : start + CHUNK_ELEMENTS]
        wrong = ~((chunk >= low) & (chunk < high))
        if wrong.any():
            return start + int(wrong.argmax())
    return None


def first_decrease(array: Array) -> tuple[int, int] | None:
    """Return row and column of the first value that is less than the one before it in its row, or None.

    >>> first_decrease(np.array([0, 2, 1]))
    (0, 2)
    """
    for number, row in enumerate(_rows(array)):
        for low in range(0, row.size - 1, CHUNK_ELEMENTS):
            chunk = row[low : low + CHUNK_ELEMENTS + 1]
            wrong = chunk[1:] < chunk[:-1]
            if wrong.any():
                return number, low + 1 + int(wrong.argmax())
    return None


def _rows(array: Array) -> Array:
    if array.ndim <= 1:
        return array.reshape(1, -1)
    return array.reshape(-1, array.shape[-1]) if array.size else array.reshape(0, 0)


def first_unsorted(segments: Segments, *, unique: bool) -> int | None:
    """Return the position of the first value that is less than the one before it in its segment (or equal
    to it, if values are `unique`), or None. Padding may be repeated.

    >>> first_unsorted(Segments(np.array([0, 2, 2]), np.array([0, 2, 3])), unique=True)
    >>> first_unsorted(Segments(np.array([0, 2, 2]), np.array([0, 3])), unique=True)
    2
    """
    compare = np.less_equal if unique else np.less
    flat, starts, pad = segments
    begin, end = (int(starts[0]), int(starts[-1])) if starts.size else (0, 0)
    is_start: np.ndarray[Any, np.dtype[np.bool_]] | None = None
    for low in range(begin, end - 1, CHUNK_ELEMENTS):
        chunk = flat[low : min(low + CHUNK_ELEMENTS + 1, end)]
        bad = compare(chunk[1:], chunk[:-1])
        if not bad.any():
            continue
        if is_start is None:
            is_start = np.zeros(flat.size + 1, dtype=np.bool_)
            is_start[starts] = True
        bad &= ~is_start[low + 1 : low + chunk.size]
        if pad is not None:
            bad &= (chunk[1:] != pad) | (chunk[:-1] != pad)
        if bad.any():
            return low + 1 + int(bad.argmax())
    return None


def has_value(array: Array, *, at: int, value: int) -> bool:
    """Return whether there is an element at a position, and it is the value."""
    return 0 <= at < array.size and bool(array.reshape(-1)[at] == value)


def is_distinct(array: Array, *, pad: int | None = None) -> bool:
    """Return whether no value occurs twice, except for padding.

    Values in a small range, such as those of a permutation, are marked in a list; others are sorted.
    """
    flat = array.reshape(-1)
    values = flat if pad is None else flat[flat != pad]
    if values.size < 2:
        return True
    is_small = values.dtype.kind in "iu" and values.dtype != np.uint64  # fits int64
    smallest, largest = (int(values.min()), int(values.max())) if is_small else (0, 0)
    if not is_small or largest - smallest >= MAX_LIST_LENGTH * values.size:
        return bool(np.unique(values).size == values.size)
    is_there = np.zeros(largest - smallest + 1, dtype=np.bool_)
    for low in range(0, values.size, CHUNK_ELEMENTS):
        chunk = values[low : low + CHUNK_ELEMENTS]
        is_there[chunk.astype(np.int64) - smallest if smallest else chunk] = True
    return int(np.count_nonzero(is_there)) == values.size


def first_repeated(array: Array, *, pad: int | None = None) -> tuple[int, int] | None:
    """Return the position of the first value that occurs before, and that of its first occurrence, or None.

    >>> first_repeated(np.array([4, 9, 4]))
    (2, 0)
    """
    if is_distinct(array, pad=pad):
        return None
    flat = array.reshape(-1)
    _, first = np.unique(flat, return_index=True)
    is_again = np.ones(flat.size, dtype=np.bool_)
    is_again[first] = False
    if pad is not None:
        is_again &= flat != pad
    where = int(is_again.argmax())
    return where, int((flat == flat[where]).argmax())


def first_wrong_product(array: Array, left: Array, right: Array) -> int | None:
    """Return the first position whose step is not the product of the steps of two other arrays, or None;
    0 if those have another size. No product wraps around unnoticed."""
    if not array.shape == left.shape == right.shape:
        return 0
    for low in range(0, array.size - 1, CHUNK_ELEMENTS):
        step, first, second = (
            _steps(side[low : low + CHUNK_ELEMENTS + 1]) for side in (array, left, right)
        )
        size = first.astype(np.float64) * second.astype(np.float64)
        wrong = (step != first * second) | (np.abs(size) >= 2.0**62)
        if wrong.any():
            return low + 1 + int(wrong.argmax())
    return None


def bit_counts(words: Array) -> Array:
    """Return the number of bits that are set in each unsigned integer.

    >>> bit_counts(np.array([0, 5, 2**64 - 1], np.uint64)).tolist()
    [0, 2, 64]
    """
    flat = np.ascontiguousarray(words).reshape(-1)
    byte_counts = _BITS_OF_BYTE[flat.view(np.uint8)].reshape(-1, flat.dtype.itemsize)
    counts: Array = byte_counts.sum(axis=1, dtype=np.int64)
    return counts


def bits_of_words(words: Array) -> Array:
    """Return a table with a row for each word, which has the bits of the word, the lowest first.

    >>> bits_of_words(np.array([5], np.uint8)).tolist()
    [[1, 0, 1, 0, 0, 0, 0, 0]]
    """
    size = words.dtype.itemsize
    flat = np.ascontiguousarray(words.reshape(-1), f"<u{size}")
    bits: Array = np.unpackbits(flat.view(np.uint8), bitorder="little")
    return bits.reshape(-1, 8 * size)


def first_wrong_word(words: Array, indptr: Array, *, length: int) -> int | None:
    """Return the first position whose word has another number of bits set than the step of `indptr` there, or
    a bit set that is not below `length`; None if there is none; 0 if the sizes do not agree.

    >>> first_wrong_word(np.array([1, 4], np.uint8), np.array([0, 1, 2]), length=2)
    1
    """
    flat, offsets = words.reshape(-1), indptr.reshape(-1)
    if offsets.size != flat.size + 1:
        return 0
    width = 8 * flat.dtype.itemsize
    for low in range(0, flat.size, CHUNK_ELEMENTS):
        chunk = flat[low : low + CHUNK_ELEMENTS]
        wrong = bit_counts(chunk) != _steps(offsets[low : low + chunk.size + 1])
        if length < width:
            wrong |= (chunk >> chunk.dtype.type(length)) != 0
        if wrong.any():
            return low + int(wrong.argmax())
    return None


_BITS_OF_BYTE = np.array([byte.bit_count() for byte in range(256)], np.uint8)


def _steps(array: Array) -> Array:
    wide = array.astype(np.int64)
    return wide[1:] - wide[:-1]


def first_member(left: Segments, right: Segments, *, is_in: bool) -> int | None:
    """Return the position of the first value of `left` that is (or is not) in the segment of the same number
    of `right`, or None."""
    smallest = min(int(side.values.min(initial=0)) for side in (left, right))
    span = max(int(side.values.max(initial=0)) for side in (left, right)) - smallest + 1
    count = max(min(SEGMENTS, KEYS // span), 1)
    for low in range(0, left.starts.size - 1, count):
        mine, theirs = (
            _keys(side, range(low, low + count), smallest=smallest, span=span)
            for side in (left, right)
        )
        wrong = np.isin(mine, theirs[theirs != PAD], invert=not is_in) & (mine != PAD)
        if wrong.any():
            return int(left.starts[low]) + int(wrong.argmax())
    return None


def _keys(of: Segments, segments: range, *, smallest: int, span: int) -> Array:
    """Return a number for each value of some segments, which is the same for equal values of one segment;
    `PAD` for padding."""
    starts = of.starts[segments.start : segments.stop + 1]
    if starts.size < 2:
        return np.empty(0, np.int64)
    values = of.values[starts[0] : starts[-1]].astype(np.int64)
    keys = np.repeat(np.arange(starts.size - 1), np.diff(starts)) * span + (values - smallest)
    return keys if of.pad is None else np.where(values == of.pad, PAD, keys)
