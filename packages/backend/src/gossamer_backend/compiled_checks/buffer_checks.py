"""The tests of a program that check facts, one for each buffer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from msgspec.structs import replace

from gossamer_backend.compiled_checks.array_test import ArrayTest, SetRelation
from gossamer_backend.compiled_checks.checked_facts import CheckedFact
from gossamer_ir.facts.fact_index import FactIndex, stated_fact_index
from gossamer_ir.nodes import (
    BitCounts,
    Distinct,
    HasValue,
    InRange,
    Monotone,
    PaddedSlots,
    ProductSteps,
    Relation,
    SortedSegments,
)

ArrayLayout: TypeAlias = "tuple[str, np.dtype[Any], int]"
"""A buffer, the dtype of its array and its number of dimensions."""


class BufferCheck(NamedTuple):
    """The test of one buffer, and the facts that give its parameters. `marks` are the least of its distinct
    values and their span, if they are marked in a list."""

    buffer: str
    test: ArrayTest
    ranges: tuple[InRange, ...]
    pad: PaddedSlots | None
    offsets: str | None
    values: tuple[HasValue, ...] = ()
    bits: BitCounts | None = None
    marks: tuple[int, int] | None = None


class _Order(msgspec.Struct, frozen=True):
    """An order of values: within segments, or within rows if there is no `indptr`."""

    indptr: str | None
    is_unique: bool


@lru_cache(maxsize=256)
def buffer_checks(
    facts: tuple[CheckedFact, ...], layouts: tuple[ArrayLayout, ...], *, is_elsewhere: bool
) -> tuple[BufferCheck, ...] | None:
    """Return a check for each buffer, offsets first; None if one cannot be tested. If the arrays are in
    another memory, the program tests the ends of offsets, too."""
    index = stated_fact_index(facts)
    checks: list[BufferCheck] = []
    for layout in sorted(layouts, key=lambda layout: _is_cut(layout[0], index)):
        check = _buffer_check(index, layout, before=checks, is_elsewhere=is_elsewhere)
        if check is None:
            return None
        checks.append(check)
    complete = [_with_tests_of_several(check, checks, index) for check in checks]
    return tuple(check for check in complete if check) if None not in complete else None


def _with_tests_of_several(
    check: BufferCheck, checks: Sequence[BufferCheck], index: FactIndex
) -> BufferCheck | None:
    """Return a check with the tests that read other arrays, too; None if one of these has no check."""
    numbers = {other.buffer: number for number, other in enumerate(checks)}
    products = index.about(check.buffer, ProductSteps)
    operands = [(numbers.get(fact.left), numbers.get(fact.right)) for fact in products]
    counts = index.about(check.buffer, BitCounts)
    offsets = [numbers.get(fact.indptr) for fact in counts]
    related = _set_relations(check, checks, index)
    is_known = not any(None in pair for pair in operands) and None not in offsets
    if len(operands) > 1 or len(counts) > 1 or related is None or not is_known:
        return None
    pair, bits = next(iter(operands), None), next(iter(offsets), None)
    test = replace(check.test, products=pair, bits=bits, related=related)
    return check._replace(test=test, bits=next(iter(counts), None))


def _set_relations(
    check: BufferCheck, checks: Sequence[BufferCheck], index: FactIndex
) -> tuple[tuple[SetRelation, int], ...] | None:
    """Return the relations of an array with others; None if one is not of sets, or not of sorted segments,
    which are searched."""
    sorted_numbers = {
        other.buffer: number
        for number, other in enumerate(checks)
        if index.holds(other.buffer, SortedSegments)
    }
    related: list[tuple[SetRelation, int]] = []
    for fact in index.about(check.buffer, Relation):
        number = sorted_numbers.get(fact.right)
        if fact.kind == "covers" or number is None or check.buffer not in sorted_numbers:
            return None
        related.append((fact.kind, number))
    return tuple(related)


def _is_cut(buffer_name: str, index: FactIndex) -> bool:
    return any(fact.indptr is not None for fact in index.about(buffer_name, SortedSegments))


def _buffer_check(
    index: FactIndex, layout: ArrayLayout, *, before: Sequence[BufferCheck], is_elsewhere: bool
) -> BufferCheck | None:
    """Return the check for a buffer, or None. At most one order can be tested; if it is within segments,
    their offsets must have been tested before."""
    name, dtype, dimensions = layout
    segments = index.about(name, SortedSegments)
    orders = [
        *(_Order(None, is_unique=False) for _ in index.about(name, Monotone)),
        *(_Order(fact.indptr, fact.unique) for fact in segments),
    ]
    ranges = index.about(name, InRange)
    is_distinct = index.holds(name, Distinct)
    is_related = any(name in (fact.left, fact.right) for fact in index.facts_of_type(Relation))
    # Values of related arrays are compared as int64.
    is_testable = dtype.kind in "iu" and not (is_related and dtype == np.uint64)
    if not is_testable or len(orders) > 1:
        return None
    # Repeated values of padding matter only where values must differ; it is in no set.
    has_pads = is_related or is_distinct or any(order.is_unique for order in orders)
    pad = next(iter(index.about(name, PaddedSlots)), None) if has_pads else None
    values = index.about(name, HasValue)
    test = ArrayTest(
        dtype.name,
        is_in_range=bool(ranges),
        is_padded=pad is not None,
        distinct="sorted" if is_distinct else None,
        values=len(values),
        tests_ends=is_elsewhere and any(fact.indptr is not None for fact in segments),
    )
    check = BufferCheck(name, test, ranges, pad, None, values)
    return _with_order_test(check, orders[0], dimensions, before=before) if orders else check


def _with_order_test(
    check: BufferCheck, order: _Order, dimensions: int, *, before: Sequence[BufferCheck]
) -> BufferCheck | None:
    """Return the check with the test of an order; None if that is within segments whose offsets were not
    tested before."""
    kind: Literal["unique", "sorted"] = "unique" if order.is_unique else "sorted"
    offsets = order.indptr
    if offsets is None:
        in_rows = replace(check.test, order=kind, is_in_rows=dimensions > 1)
        return check._replace(test=in_rows)
    tested = [
        number
        for number, earlier in enumerate(before)
        if earlier.buffer == offsets and earlier.test.order and not earlier.test.is_in_segments
    ]
    # Unchecked offsets could make the kernel read out of bounds.
    if not tested:
        return None
    in_segments = replace(check.test, order=kind, offsets=tested[0])
    return check._replace(test=in_segments, offsets=offsets)
