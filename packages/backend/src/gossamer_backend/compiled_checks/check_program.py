"""The program that checks index arrays: one pass over each array, parallel and vectorized.

Three properties of an array can be tested: range, order, and distinct values. For the order, the program
counts all *steps* that decrease from one element to the next, and those of them that lead into the first
element of a segment, where they are allowed. Every segment is sorted if and only if the counts are equal. So
no loop runs over single segments, and the cost does not depend on their lengths. Distinct values are marked
in a list of all possible values, on one thread. If a test fails, the program returns `OUT_OF_BOUNDS` with the
index of the array; the caller finds the element.

It reads whole arrays before a kernel runs, and lowering schedules it. The tests that the pass
`check_index_arrays` puts into a kernel read the rows of one block just before they are computed; they are
flat statements, because the loop over blocks has no earlier stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal

import msgspec
import numpy as np

from gossamer_ir.facts.index_arrays import TESTED_BYTES
from gossamer_ir.nodes import Module

VECTORS_PER_PIECE = 64
"""Vectors in a piece: it stays in the L1 cache while several tests read it."""

MIN_THREAD_ELEMENTS = 524_288
"""Minimum number of elements per thread: some 30 microseconds of work."""


MAX_VALUE, MAX_STEP = 1 << 61, 1 << 31
"""Limits of values and of steps: below these, neither a difference nor a product of steps wraps around."""


class ArrayTest(msgspec.Struct, frozen=True):
    """The tests of an array of integers, which is seen as flat.

    `in_range`: low <= x <= last. `order`: values never decrease, or increase (`unique`), within the whole
    array, within the segments that array number `offsets` defines (it is sorted, starts at 0 and ends at the
    size of this array), or within rows of `width` elements (`in_rows`). `distinct`: no value occurs twice,
    and all are in [least, least + span). `values`: so many elements have a known value. `tests_ends`: the
    offsets start at 0 and end at the size of this array. `products`: the steps of this array are the products
    of those of the two arrays of these numbers, none of which is near the limits of int64. `padded`: `pad`
    may occur any number of times, also in succession. Low, last, width, least, span and pad are parameters of
    the program, named with the number of the array: `low0`; so are `at0_0` and `value0_0` of each known
    value.
    """

    dtype: str
    in_range: bool = False
    order: Literal["sorted", "unique"] | None = None
    offsets: int | None = None
    in_rows: bool = False
    padded: bool = False
    distinct: bool = False
    values: int = 0
    tests_ends: bool = False
    products: tuple[int, int] | None = None

    @property
    def in_segments(self) -> bool:
        """True if the order is tested within segments or rows."""
        return self.order is not None and (self.in_rows or self.offsets is not None)


@lru_cache(maxsize=64)
def program_of_checks(tests: tuple[ArrayTest, ...]) -> Module:
    """Return the loop-stage program of the tests; array number k is `xk` and has `nk` elements.

    >>> module = program_of_checks((ArrayTest("int32", in_range=True),))
    >>> module.stage, [param.name for param in module.functions[0].params]
    ('loop', ['x0', 'n0', 'low0', 'last0'])
    """
    from gossamer_ir.script import parse_module  # only where a kernel is compiled

    numbered = list(enumerate(tests))
    params = [param for k, test in numbered for param in _param_lines(k, test)]
    lines = [f'X{k} = T.match_buffer(x{k}, (n{k},), "{test.dtype}")' for k, test in numbered]
    for k, test in numbered:
        lines += _value_lines(k, test)
        if test.in_segments:
            lines += _segment_start_lines(k, tests)
            lines += _agreement_lines(k, tests)
        if test.distinct:
            lines += _crossed_off(k, test)
        lines += _known_value_lines(k, test)
    for k, test in numbered:
        # After the tests of all single arrays.
        lines += _product_lines(k, test)
    body = "\n".join(f"    {line}" for line in lines)
    return parse_module(
        f"@T.prim_func\ndef check({', '.join(params)}) -> None:\n"
        f'    T.func_attr({{"sparse_tir_level": 0}})\n{body}\n'
    )


def _param_lines(k: int, test: ArrayTest) -> Iterator[str]:
    yield f"x{k}: T.handle"
    yield f"n{k}: T.int64"
    if test.in_range:
        yield f"low{k}: T.{test.dtype}"
        yield f"last{k}: T.{test.dtype}"
    if test.in_rows:
        yield f"width{k}: T.int64"
    if test.distinct:
        yield f"least{k}: T.int64"
        yield f"span{k}: T.int64"
    if test.padded:
        yield f"pad{k}: T.{test.dtype}"
    for number in range(test.values):
        yield f"at{k}_{number}: T.int64"
        yield f"value{k}_{number}: T.int64"


def _value_lines(k: int, test: ArrayTest) -> Iterator[str]:
    """Yield the tests of single elements, and of each with the next one."""
    if not test.in_range and not test.order:
        return
    at = _position(test)
    if test.in_segments:
        yield f'STEPS{k} = T.alloc_buffer(({_pieces(f"n{k}", test)},), "int64")'
    yield _loop_over_pieces(f"n{k}", test)
    if test.in_range:
        # Values below low wrap to large unsigned numbers: one comparison instead of two.
        unsigned = f"uint{8 * np.dtype(test.dtype).itemsize}"
        low = f"T.{unsigned}(low{k})"
        yield from _reduction_lines(
            "most",
            f"T.max(most[0], T.{unsigned}(X{k}[{at}]) - {low})",
            test=test,
            start=(unsigned, "0"),
            below=f"{at} < n{k}",
        )
        yield f"    T.guard(most[0] <= T.{unsigned}(last{k}) - {low}, X{k})"
    if test.order:
        step = _violation(k, test, before=at, after=f"{at} + 1")
        yield from _count_lines("steps", step, test=test, below=f"{at} + 1 < n{k}")
        if test.in_segments:
            yield f"    STEPS{k}[c] = T.int64(steps[0])"
        else:
            yield f"    T.guard(steps[0] == 0, X{k})"


def _segment_start_lines(k: int, tests: tuple[ArrayTest, ...]) -> Iterator[str]:
    """Yield the count of the decreasing steps into first elements of segments that are not empty, per
    lane."""
    test, (count, source) = tests[k], _segments(k, tests)
    row, lanes, start = _position(source), _lanes(source), f"({_position(source)}) * width{k}"
    conditions = [f"{row} < {count}"]
    if test.offsets is not None:
        offsets = f"X{test.offsets}"
        start = f"T.int64({offsets}[{row}])"
        conditions = [f"{row} + 1 < n{test.offsets}", f"{offsets}[{row}] < {offsets}[{row} + 1]"]
    conditions.append(f"(0 < {start}) and ({start} < n{k})")
    step = _violation(k, test, before=f"{start} - 1", after=start)
    yield f'STARTS{k} = T.alloc_buffer(({_pieces(count, source)},), "int64")'
    yield _loop_over_pieces(count, source)
    yield f'    starts = T.alloc_buffer(({lanes},), "int64", scope="local")'
    yield f"    for l in T.vectorized({lanes}):"
    yield "        starts[l] = 0"
    yield f"    for t in T.serial({VECTORS_PER_PIECE}):"
    yield f"        for l in T.vectorized({lanes}):"
    for depth, condition in enumerate(conditions, start=3):
        yield f"{'    ' * depth}if {condition}:"
    indent = "    " * (3 + len(conditions))
    yield f"{indent}starts[l] = starts[l] + T.Select({step}, T.int64(1), T.int64(0))"
    yield f"    STARTS{k}[c] = 0"
    yield f"    for l in T.serial({lanes}):"
    yield f"        STARTS{k}[c] = STARTS{k}[c] + starts[l]"


def _agreement_lines(k: int, tests: tuple[ArrayTest, ...]) -> Iterator[str]:
    yield f'left{k} = T.alloc_buffer((1,), "int64", scope="local")'
    yield f"left{k}[0] = 0"
    yield f"for c in T.serial({_pieces(f'n{k}', tests[k])}):"
    yield f"    left{k}[0] = left{k}[0] + STEPS{k}[c]"
    yield f"for c in T.serial({_pieces(*_segments(k, tests))}):"
    yield f"    left{k}[0] = left{k}[0] - STARTS{k}[c]"
    yield f"T.guard(left{k}[0] == 0, X{k})"


def _crossed_off(k: int, test: ArrayTest) -> Iterator[str]:
    """Yield the count of values that are marked already; a value outside the list is out of bounds."""
    yield f'SEEN{k} = T.alloc_buffer((span{k},), "uint8")'
    yield f'twice{k} = T.alloc_buffer((1,), "int64", scope="local")'
    yield f"twice{k}[0] = 0"
    yield f"for v in T.serial(span{k}):"
    yield f"    SEEN{k}[v] = T.uint8(0)"
    yield f"for e in T.serial(n{k}):"
    indent = "    "
    if test.padded:
        yield f"    if X{k}[e] != pad{k}:"
        indent *= 2
    at = f"T.int64(X{k}[e]) - least{k}"
    yield f"{indent}twice{k}[0] = twice{k}[0] + T.int64(SEEN{k}[{at}])"
    yield f"{indent}SEEN{k}[{at}] = T.uint8(1)"
    yield f"T.guard(twice{k}[0] == 0, X{k})"


def _product_lines(k: int, test: ArrayTest) -> Iterator[str]:
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


def _known_value_lines(k: int, test: ArrayTest) -> Iterator[str]:
    """Yield the tests of elements at known positions; a position outside the array is out of bounds."""
    for number in range(test.values):
        yield f"T.guard(T.int64(X{k}[at{k}_{number}]) == value{k}_{number}, X{k})"
    if test.tests_ends:
        offsets = test.offsets
        yield f"T.guard(T.int64(X{offsets}[0]) == 0, X{offsets})"
        yield f"T.guard(T.int64(X{offsets}[n{offsets} - 1]) == n{k}, X{offsets})"


def _segments(k: int, tests: tuple[ArrayTest, ...]) -> tuple[str, ArrayTest]:
    """Return the number of segments, and the test of the array over which the loop over segments runs."""
    offsets = tests[k].offsets
    if offsets is None:
        return f"n{k} // T.max(width{k}, 1)", tests[k]
    return f"T.max(n{offsets} - 1, 0)", tests[offsets]


def _violation(k: int, test: ArrayTest, *, before: str, after: str) -> str:
    """Return the condition that two successive elements violate the order."""
    wrong = f"X{k}[{after}] {'<=' if test.order == 'unique' else '<'} X{k}[{before}]"
    if not test.padded:
        return wrong
    return f"({wrong}) and ((X{k}[{after}] != pad{k}) or (X{k}[{before}] != pad{k}))"


def _count_lines(name: str, wanted: str, *, test: ArrayTest, below: str) -> Iterator[str]:
    dtype = "int64" if _itemsize(test) == 8 else "int32"
    value = f"{name}[0] + T.Select({wanted}, T.{dtype}(1), T.{dtype}(0))"
    return _reduction_lines(name, value, test=test, start=(dtype, "0"), below=below)


def _reduction_lines(
    name: str,
    value: str,
    *,
    test: ArrayTest,
    start: tuple[str, str],
    below: str,
) -> Iterator[str]:
    """Yield a reduction over a piece: `start` is updated to `value` for each element."""
    yield f'    {name} = T.alloc_buffer((1,), "{start[0]}", scope="local")'
    yield f"    {name}[0] = {start[1]}"
    yield f"    for t in T.serial({VECTORS_PER_PIECE}):"
    yield f"        for l in T.vectorized({_lanes(test)}):"
    yield f"            if {below}:"
    yield f"                {name}[0] = {value}"


def _loop_over_pieces(count: str, test: ArrayTest) -> str:
    piece = VECTORS_PER_PIECE * _lanes(test)
    return f"for c in T.parallel({_pieces(count, test)}, weight=c * {piece}, grain={MIN_THREAD_ELEMENTS}):"


def _pieces(count: str, test: ArrayTest) -> str:
    piece = VECTORS_PER_PIECE * _lanes(test)
    return f"({count} + {piece - 1}) // {piece}"


def _position(test: ArrayTest) -> str:
    lanes = _lanes(test)
    return f"c * {VECTORS_PER_PIECE * lanes} + t * {lanes} + l"


def _lanes(test: ArrayTest) -> int:
    return TESTED_BYTES // _itemsize(test)


def _itemsize(test: ArrayTest) -> int:
    return max(np.dtype(test.dtype).itemsize, 4)
