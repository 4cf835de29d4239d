"""The tests of one index array, from which the program of all checks is made."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

SetRelation: TypeAlias = Literal["subset", "disjoint"]
"""A relation of the segments of two arrays that can be tested."""


class ArrayTest(msgspec.Struct, frozen=True):
    """The tests of an array of integers, which is seen as flat.

    `in_range`: low <= x <= last. `order`: values never decrease, or increase (`unique`), within the whole
    array, within the segments that array number `offsets` defines (it is sorted, starts at 0 and ends at the
    size of this array), or within rows of `width` elements (`in_rows`). `distinct`: no value occurs twice; if
    values are `marked`, all are in [least, least + span), else they are `sorted`. `values`: so many elements
    have a known value. `tests_ends`: the offsets start at 0 and end at the size of this array. `products`:
    the steps of this array are the products of those of the two arrays of these numbers, none of which is
    near the limits of int64. `padded`: `pad` may occur any number of times, also in succession, and is not an
    element of a segment. `bits`: the number of bits that are set in each element is the step of the offsets
    of this number, and none of them is in the mask `beyond`. `related`: each segment is a subset of the
    segment of an array of this number, or disjoint from it; both arrays have an order. Low, last, width,
    least, span, pad and beyond are parameters of the program, named with the number of the array: `low0`; so
    are `at0_0` and `value0_0` of each known value.
    """

    dtype: str
    in_range: bool = False
    order: Literal["sorted", "unique"] | None = None
    offsets: int | None = None
    in_rows: bool = False
    padded: bool = False
    distinct: Literal["marked", "sorted"] | None = None
    values: int = 0
    tests_ends: bool = False
    products: tuple[int, int] | None = None
    bits: int | None = None
    related: tuple[tuple[SetRelation, int], ...] = ()

    @property
    def in_segments(self) -> bool:
        """True if the order is tested within segments or rows."""
        return self.order is not None and (self.in_rows or self.offsets is not None)
