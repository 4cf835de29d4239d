"""Violations of properties of index arrays: where an array first lacks one, in words.

A kernel and a tensor need the same properties of index arrays. Their packages find violations here, and
raise them as errors of their own.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from gossamer_ir.facts.index_arrays import (
    Segments,
    first_decrease,
    first_member,
    first_outside,
    first_repeated,
    first_unsorted,
    first_wrong_product,
    first_wrong_word,
    has_value,
)
from gossamer_support.arrays import Array
from gossamer_support.message_texts import amount

NamedArray: TypeAlias = tuple[str, Array]
"""An array, after the name that sentences give to it."""


class Violation(msgspec.Struct, frozen=True):
    """A property that an array lacks: its name, which ends the code of an error, a sentence, and a hint."""

    property: str
    sentence: str
    hint: str = ""


def range_violation(named: NamedArray, *, low: int, high: int) -> Violation | None:
    """Return the first value that is not in [low, high), or None.

    >>> import numpy as np
    >>> range_violation(("indices", np.array([0, 5])), low=0, high=3).sentence
    "Element 1 of 'indices' is 5; expected a value from 0 to 2."
    """
    name, array = named
    at = first_outside(array, low=low, high=high)
    if at is None:
        return None
    expected = f"a value from {low} to {high - 1}" if low < high else "an empty array"
    sentence = f"Element {at} of '{name}' is {array.reshape(-1)[at]}; expected {expected}."
    return Violation("range", sentence)


def monotone_violation(named: NamedArray) -> Violation | None:
    """Return the first value that is less than the one before it along the last dimension, or None."""
    name, array = named
    decrease = first_decrease(array)
    if decrease is None:
        return None
    row, at = decrease
    line = array.reshape(-1, array.shape[-1])[row]
    return Violation(
        "monotone",
        f"Element {at} of '{name}' is {line[at]}, which is less than the one before it, {line[at - 1]}.",
        "Pass offsets that never decrease.",
    )


def order_violation(name: str, segments: Segments, *, unique: bool) -> Violation | None:
    """Return the first value that is less than the one before it in its segment, or equal to it although
    values are `unique`; None if there is none."""
    at = first_unsorted(segments, unique=unique)
    if at is None:
        return None
    values = segments.values
    before, value = values[at - 1], values[at]
    is_repeated = bool(before == value)
    relation = "equal to" if is_repeated else "less than"
    return Violation(
        "unique" if is_repeated else "sorted",
        f"Element {at} of '{name}' is {value}, which is {relation} the one before it in its segment, "
        f"{before}.",
        "Sort each segment and combine duplicates.",
    )


def value_violation(named: NamedArray, *, at: int, value: int) -> Violation | None:
    """Return a violation unless the element at an index exists and has the value."""
    name, array = named
    if has_value(array, at=at, value=value):
        return None
    is_there = 0 <= at < array.size
    actual = (
        f"is {array.reshape(-1)[at]}"
        if is_there
        else f"does not exist in an array of size {array.size}"
    )
    return Violation(
        "value",
        f"Element {at} of '{name}' {actual}; expected {value}.",
        "Offsets lead from 0 to the number of elements.",
    )


def distinct_violation(named: NamedArray, *, pad: int | None = None) -> Violation | None:
    """Return the first value, other than padding, that occurs before, or None."""
    name, array = named
    repeated = first_repeated(array, pad=pad)
    if repeated is None:
        return None
    at, before = repeated
    return Violation(
        "distinct",
        f"Element {at} of '{name}' is {array.reshape(-1)[at]}, as is element {before}.",
        "Pass an array without duplicates.",
    )


def bits_violation(words: NamedArray, offsets: NamedArray, *, length: int) -> Violation | None:
    """Return the first word with another number of bits set than the step of the offsets there, or with a
    bit set that is not below `length`; None if there is none."""
    (name, array), (other, indptr) = words, offsets
    at = first_wrong_word(array, indptr, length=length)
    if at is None:
        return None
    # Without an offset for each word, there is no step to compare with.
    if indptr.size != array.size + 1:
        return Violation(
            "bits",
            f"'{other}' has {amount(indptr.size, 'element')}; expected {array.size + 1}, one more than "
            f"'{name}'.",
        )
    flat = indptr.reshape(-1)
    word, first, last = int(array.reshape(-1)[at]), int(flat[at]), int(flat[at + 1])
    # A bit that is too high is named even if the number of bits is right.
    if word.bit_length() > length:
        reason = f"bit {word.bit_length() - 1} set; expected none from bit {length} on"
    else:
        reason = (
            f"{amount(word.bit_count(), 'bit')} set; expected {last - first}, since elements {at} and "
            f"{at + 1} of '{other}' are {first} and {last}"
        )
    return Violation(
        "bits",
        f"Element {at} of '{name}' is {word:#b}, which has {reason}.",
        f"The steps of '{other}' are the numbers of bits that are set.",
    )


def product_violation(
    named: NamedArray, *, left: NamedArray, right: NamedArray
) -> Violation | None:
    """Return the first step that is not the product of the steps of two other arrays, or None."""
    name, array = named
    at = first_wrong_product(array, left[1], right[1])
    if at is None:
        return None
    # The first step ends at element 1; 0 says that there is another number of steps.
    if at == 0:
        expected = f"as many as '{left[0]}' and '{right[0]}' have"
        actual = f"'{name}' has {amount(array.size, 'element')}"
    else:
        actual = f"Element {at} of '{name}' is {array[at]}"
        rise = " * ".join(str(int(side[at]) - int(side[at - 1])) for _, side in (left, right))
        expected = f"{array[at - 1]} + {rise}"
    return Violation(
        "product",
        f"{actual}; expected {expected}.",
        f"Pass the prefix sums of products of the row lengths in '{left[0]}' and '{right[0]}'.",
    )


def subset_violation(name: str, left: Segments, right: Segments, *, of: str) -> Violation | None:
    """Return the first value that is not in the segment of the same number on the right, or None."""
    at = first_member(left, right, is_in=False)
    if at is None:
        return None
    return Violation(
        "subset",
        f"Element {at} of '{name}' is {left.values[at]}, which is not in its segment of '{of}'.",
        "Pass index arrays of which one contains all values of the other.",
    )


def disjoint_violation(name: str, left: Segments, right: Segments, *, of: str) -> Violation | None:
    """Return the first value that is also in the segment of the same number on the right, or None."""
    at = first_member(left, right, is_in=True)
    if at is None:
        return None
    return Violation(
        "disjoint",
        f"Element {at} of '{name}' is {left.values[at]}, which is in its segment of '{of}', too.",
        "Pass index arrays that have nothing in common.",
    )
