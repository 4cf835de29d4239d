"""Tests of an array together with others, which rely on the tests of each single array."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gossamer_backend.compiled_checks.array_test import ArrayTest
from gossamer_backend.compiled_checks.chunk_loops import count_lines, loop_over_chunks, position

MIN_THREAD_SEARCHES = 16_384
"""Minimum number of searches per thread: some 100 microseconds of work."""

MAX_VALUE, MAX_STEP = 1 << 61, 1 << 31
"""Limits of values and of steps: below these, neither a difference nor a product of steps wraps around."""


def product_lines(k: int, test: ArrayTest) -> Iterator[str]:
    """Yield the count of the steps that are the products of two others. Steps whose difference or product
    might wrap around are not counted."""
    if test.products is None:
        return
    left, right = test.products
    yield f"T.guard((n{left} == n{k}) and (n{right} == n{k}), X{k})"
    yield f'equal{k} = T.alloc_buffer((1,), "int64", scope="local")'
    yield f"equal{k}[0] = 0"
    yield f"for e in T.serial(T.max(n{k} - 1, 0)):"
    values = [f"T.int64(X{j}[{at}])" for j in (k, left, right) for at in ("e", "e + 1")]
    steps = [
        f"({after} - {before})" for before, after in zip(values[::2], values[1::2], strict=True)
    ]
    conditions = (
        _all_within(values, limit=MAX_VALUE),
        _all_within(steps[1:], limit=MAX_STEP),
        f"{steps[0]} == {steps[1]} * {steps[2]}",
    )
    for depth, condition in enumerate(conditions, start=1):
        yield f"{'    ' * depth}if {condition}:"
    yield f"{'    ' * (len(conditions) + 1)}equal{k}[0] = equal{k}[0] + 1"
    yield f"T.guard(equal{k}[0] == T.max(n{k} - 1, 0), X{k})"


def _all_within(values: Iterable[str], *, limit: int) -> str:
    """Return the condition that the absolute values of all are below a limit."""
    return " and ".join(f"({value} < {limit}) and ({value} > {-limit})" for value in values)


def bit_count_lines(k: int, test: ArrayTest) -> Iterator[str]:
    """Yield the count of the elements of a chunk whose bits are not as many as the step of the offsets, or
    not all allowed."""
    if test.bits is None:
        return
    offsets, at = f"X{test.bits}", position(test)
    yield f"T.guard(n{test.bits} == n{k} + 1, X{k})"
    step = f"T.int64({offsets}[{at} + 1]) - T.int64({offsets}[{at}])"
    wrong = f"T.int64(T.popcount(X{k}[{at}])) != {step}"
    beyond = f"(X{k}[{at}] & T.{test.dtype}(beyond{k})) != T.{test.dtype}(0)"
    yield loop_over_chunks(f"n{k}", test)
    condition = f"({wrong}) or ({beyond})"
    yield from count_lines("wrong", condition, test=test, count=f"n{k}")
    yield f"    T.guard(wrong[0] == 0, X{k})"


def relation_lines(k: int, tests: Sequence[ArrayTest]) -> Iterator[str]:
    """Yield a search for each element in the segment of the same number of another array. Padding is not an
    element of either."""
    count, begin, end = _segments(k, tests[k])
    for relation, other in tests[k].related:
        other_count, least, most = _segments(other, tests[other])
        yield f"T.guard({count} == {other_count}, X{k})"
        # Not the offsets: nothing proves that there is one for each segment.
        weight = f"p * (n{k} // T.max({count}, 1) + 1)"
        yield f"for p in T.parallel({count}, weight={weight}, grain={MIN_THREAD_SEARCHES}):"
        yield f"    for e in T.serial({end} - {begin}):"
        value, indent = f"X{k}[{begin} + e]", "        "
        if tests[k].is_padded:
            yield f"{indent}if {value} != pad{k}:"
            indent += "    "
        search = f'T.search("exact", X{other}, begin={least}, end={most}, value=T.int64({value}))'
        is_member, is_absent = f"{search} >= 0", f"{search} < 0"
        if tests[other].is_padded:
            pad = f"T.int64(pad{other})"
            is_member = f"({is_member}) and (T.int64({value}) != {pad})"
            is_absent = f"({is_absent}) or (T.int64({value}) == {pad})"
        yield f"{indent}T.guard({is_member if relation == 'subset' else is_absent}, X{k})"


def _segments(k: int, test: ArrayTest) -> tuple[str, str, str]:
    """Return the number of segments of an array, and the begin and the end of segment `p`."""
    if test.offsets is not None:
        offsets = test.offsets
        begin, end = (f"T.int64(X{offsets}[{at}])" for at in ("p", "p + 1"))
        return f"T.max(n{offsets} - 1, 0)", begin, end
    if test.is_in_rows:
        return f"n{k} // T.max(width{k}, 1)", f"p * width{k}", f"(p + 1) * width{k}"
    return "1", f"p * n{k}", f"(p + 1) * n{k}"
