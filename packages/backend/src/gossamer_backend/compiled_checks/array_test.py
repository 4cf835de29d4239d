"""The tests of one index array, from which the program of all checks is made."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

SetRelation: TypeAlias = Literal["subset", "disjoint"]
"""A relation of the segments of two arrays that can be tested."""


class ArrayTest(msgspec.Struct, frozen=True):
    """The tests of an array of integers, which is seen as flat.

    Bounds, widths, pads and known values are parameters of the program, named with the number of the array:
    `low0`, `last0`, `width0`, `least0`, `span0`, `pad0`, `beyond0`, and `at0_0` and `value0_0` of each known
    value.
    """

    dtype: str
    is_in_range: bool = False
    """low <= x <= last."""
    order: Literal["sorted", "unique"] | None = None
    """Values never decrease, or increase (`unique`), within the whole array, within segments,
    or within rows."""
    offsets: int | None = None
    """The number of the array whose segments have the `order`. It is sorted, starts at 0 and ends at the
    size of this array."""
    is_in_rows: bool = False
    """The `order` is that within rows of `width` elements."""
    is_padded: bool = False
    """`pad` may occur any number of times, also in succession, and is not an element of a segment."""
    distinct: Literal["marked", "sorted"] | None = None
    """No value occurs twice. If values are `marked`, all are in [least, least + span), else
    they are `sorted`."""
    values: int = 0
    """The number of elements with a known value."""
    tests_ends: bool = False
    """The offsets start at 0 and end at the size of this array."""
    products: tuple[int, int] | None = None
    """The steps of this array are the products of those of the two arrays of these numbers, none of which
    is near the limits of int64."""
    bits: int | None = None
    """The number of bits that are set in each element is the step of the offsets of this number, and none
    of them is in the mask `beyond`."""
    related: tuple[tuple[SetRelation, int], ...] = ()
    """Each segment is a subset of the segment of an array of this number, or disjoint from it; both arrays
    have an order."""

    @property
    def is_in_segments(self) -> bool:
        """True if the order is tested within segments or rows."""
        return self.order is not None and (self.is_in_rows or self.offsets is not None)
