"""The program that checks index arrays: one pass over each array, parallel and vectorized.

Three properties of a single array can be tested: range, order, and distinct values. For the order, the
program counts all *steps* that decrease from one element to the next, and those of them that lead into the
first element of a segment, where they are allowed. Every segment is sorted if and only if the counts are
equal. So no loop runs over single segments, and the cost does not depend on their lengths. Tests of several
arrays follow, which rely on these. If a test fails, the program returns `OUT_OF_BOUNDS` with the index of the
array; the caller finds the element.

It reads whole arrays before a kernel runs, and lowering schedules it. The tests that the pass
`insert_index_array_checks` puts into a kernel read the rows of one block just before they are computed; they
are flat statements, because the loop over blocks has no earlier stage.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from gossamer_backend.compiled_checks.array_test import ArrayTest
from gossamer_backend.compiled_checks.chunk_loops import (
    chunk_count,
    count_lines,
    lanes,
    loop_over_chunks,
    position,
    reduction_lines,
    vectors_in_chunk,
)
from gossamer_backend.compiled_checks.distinct_values import distinct_lines
from gossamer_backend.compiled_checks.several_arrays import (
    bit_count_lines,
    product_lines,
    relation_lines,
)
from gossamer_ir.nodes import Module


@lru_cache(maxsize=64)
def program_of_checks(tests: tuple[ArrayTest, ...]) -> Module:
    """Return the loop-stage program of the tests; array number k is `xk` and has `nk` elements.

    >>> module = program_of_checks((ArrayTest("int32", is_in_range=True),))
    >>> module.stage, [param.name for param in module.functions[0].params]
    ('loop', ['x0', 'n0', 'low0', 'last0'])
    """
    from gossamer_ir.script import parse_module  # only where a kernel is compiled

    numbered = list(enumerate(tests))
    params = [param for k, test in numbered for param in _param_lines(k, test)]
    lines = [f'X{k} = T.match_buffer(x{k}, (n{k},), "{test.dtype}")' for k, test in numbered]
    for k, test in numbered:
        lines += _value_lines(k, test)
        if test.is_in_segments:
            lines += _segment_start_lines(k, tests)
            lines += _agreement_lines(k, tests)
        lines += distinct_lines(k, test)
        lines += _known_value_lines(k, test)
    for k, test in numbered:
        # After the tests of all single arrays.
        lines += product_lines(k, test)
        lines += bit_count_lines(k, test)
        lines += relation_lines(k, tests)
    body = "\n".join(f"    {line}" for line in lines)
    return parse_module(
        f"@T.prim_func\ndef check({', '.join(params)}) -> None:\n"
        f'    T.func_attr({{"sparse_tir_level": 0}})\n{body}\n'
    )


def _param_lines(k: int, test: ArrayTest) -> Iterator[str]:
    yield f"x{k}: T.handle"
    yield f"n{k}: T.int64"
    if test.is_in_range:
        yield f"low{k}: T.{test.dtype}"
        yield f"last{k}: T.{test.dtype}"
    if test.is_in_rows:
        yield f"width{k}: T.int64"
    if test.distinct == "marked":
        yield f"least{k}: T.int64"
        yield f"span{k}: T.int64"
    if test.is_padded:
        yield f"pad{k}: T.{test.dtype}"
    if test.bits is not None:
        yield f"beyond{k}: T.int64"
    for number in range(test.values):
        yield f"at{k}_{number}: T.int64"
        yield f"value{k}_{number}: T.int64"


def _value_lines(k: int, test: ArrayTest) -> Iterator[str]:
    """Yield the tests of single elements, and of each with the next one."""
    if not test.is_in_range and not test.order:
        return
    at = position(test)
    if test.is_in_segments:
        yield f'STEPS{k} = T.alloc_buffer(({chunk_count(f"n{k}", test)},), "int64")'
    yield loop_over_chunks(f"n{k}", test)
    if test.is_in_range:
        # Values below low wrap to large unsigned numbers: one comparison instead of two.
        unsigned = f"uint{8 * np.dtype(test.dtype).itemsize}"
        low = f"T.{unsigned}(low{k})"
        yield from reduction_lines(
            "most",
            f"T.max(most[0], T.{unsigned}(X{k}[{at}]) - {low})",
            test=test,
            count=f"n{k}",
            start=(unsigned, "0"),
        )
        yield f"    T.guard(most[0] <= T.{unsigned}(last{k}) - {low}, X{k})"
    if test.order:
        step = _violation(k, test, before=at, after=f"{at} + 1")
        yield from count_lines("steps", step, test=test, count=f"n{k} - 1")
        if test.is_in_segments:
            yield f"    STEPS{k}[c] = T.int64(steps[0])"
        else:
            yield f"    T.guard(steps[0] == 0, X{k})"


def _segment_start_lines(k: int, tests: tuple[ArrayTest, ...]) -> Iterator[str]:
    """Yield the count of the decreasing steps into first elements of segments that are not empty, per
    lane."""
    test, (count, source) = tests[k], _segments(k, tests)
    row, width, start = position(source), lanes(source), f"({position(source)}) * width{k}"
    conditions = [f"{row} < {count}"]
    if test.offsets is not None:
        offsets = f"X{test.offsets}"
        start = f"T.int64({offsets}[{row}])"
        conditions = [f"{row} + 1 < n{test.offsets}", f"{offsets}[{row}] < {offsets}[{row} + 1]"]
    conditions.append(f"(0 < {start}) and ({start} < n{k})")
    step = _violation(k, test, before=f"{start} - 1", after=start)
    yield f'STARTS{k} = T.alloc_buffer(({chunk_count(count, source)},), "int64")'
    yield loop_over_chunks(count, source)
    yield f'    starts = T.alloc_buffer(({width},), "int64", scope="local")'
    yield f"    for l in T.vectorized({width}):"
    yield "        starts[l] = 0"
    yield f"    for t in T.serial({vectors_in_chunk(count, source)}):"
    yield f"        for l in T.vectorized({width}):"
    for depth, condition in enumerate(conditions, start=3):
        yield f"{'    ' * depth}if {condition}:"
    indent = "    " * (3 + len(conditions))
    yield f"{indent}starts[l] = starts[l] + T.Select({step}, T.int64(1), T.int64(0))"
    yield f"    STARTS{k}[c] = 0"
    yield f"    for l in T.serial({width}):"
    yield f"        STARTS{k}[c] = STARTS{k}[c] + starts[l]"


def _agreement_lines(k: int, tests: tuple[ArrayTest, ...]) -> Iterator[str]:
    yield f'left{k} = T.alloc_buffer((1,), "int64", scope="local")'
    yield f"left{k}[0] = 0"
    yield f"for c in T.serial({chunk_count(f'n{k}', tests[k])}):"
    yield f"    left{k}[0] = left{k}[0] + STEPS{k}[c]"
    yield f"for c in T.serial({chunk_count(*_segments(k, tests))}):"
    yield f"    left{k}[0] = left{k}[0] - STARTS{k}[c]"
    yield f"T.guard(left{k}[0] == 0, X{k})"


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
    if not test.is_padded:
        return wrong
    return f"({wrong}) and ((X{k}[{after}] != pad{k}) or (X{k}[{before}] != pad{k}))"
