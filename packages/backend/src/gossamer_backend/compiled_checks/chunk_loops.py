"""Loops over an array in chunks of several vectors, which run in parallel."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gossamer_backend.compiled_checks.array_test import ArrayTest
from gossamer_ir.facts.index_arrays import TESTED_BYTES

VECTORS_PER_CHUNK = 128
"""Vectors in a chunk: it stays in the L1 cache while several tests read it."""

MIN_THREAD_ELEMENTS = 524_288
"""Minimum number of elements per thread: some 30 microseconds of work."""


def loop_over_chunks(count: str, test: ArrayTest) -> str:
    """Return the head of the loop `c` over the chunks of `count` elements."""
    chunk = VECTORS_PER_CHUNK * lanes(test)
    extent, weight = chunk_count(count, test), f"c * {chunk}"
    return f"for c in T.parallel({extent}, weight={weight}, grain={MIN_THREAD_ELEMENTS}):"


def count_lines(name: str, wanted: str, *, test: ArrayTest, count: str) -> Iterator[str]:
    """Yield the number of the elements of a chunk for which a condition is true; `count` elements have it."""
    dtype = "int64" if _itemsize(test) == 8 else "int32"
    value = f"{name}[0] + T.Select({wanted}, T.{dtype}(1), T.{dtype}(0))"
    return reduction_lines(name, value, test=test, count=count, start=(dtype, "0"))


def reduction_lines(
    name: str, value: str, *, test: ArrayTest, count: str, start: tuple[str, str]
) -> Iterator[str]:
    """Yield a reduction over a chunk of the first `count` elements: `start` is updated to `value` for each.

    The elements after the last full vector are read one by one: with a mask for all vectors, the loop would
    take four times as long.
    """
    full, width = full_vectors(count, test), lanes(test)
    stored = f"T.min({VECTORS_PER_CHUNK * width}, {count} - c * {VECTORS_PER_CHUNK * width})"
    yield f'    {name} = T.alloc_buffer((1,), "{start[0]}", scope="local")'
    yield f"    {name}[0] = {start[1]}"
    yield f"    for t in T.serial({full}):"
    yield f"        for l in T.vectorized({width}):"
    yield f"            {name}[0] = {value}"
    yield f"    for t in T.serial({full}, {full} + 1):"
    yield f"        for l in T.serial({stored} - t * {width}):"
    yield f"            {name}[0] = {value}"


def chunk_count(count: str, test: ArrayTest) -> str:
    """Return the number of chunks of `count` elements."""
    chunk = VECTORS_PER_CHUNK * lanes(test)
    return f"({count} + {chunk - 1}) // {chunk}"


def vectors_in_chunk(count: str, test: ArrayTest) -> str:
    """Return the number of vectors with elements of chunk `c`. The last chunk has fewer: the vectors that it
    lacks would take most of the time of a check of a small array."""
    return full_vectors(f"{count} + {lanes(test) - 1}", test)


def full_vectors(count: str, test: ArrayTest) -> str:
    """Return the number of full vectors of chunk `c` of `count` elements."""
    width = lanes(test)
    left = f"{count} - c * {VECTORS_PER_CHUNK * width}"
    return f"T.min({VECTORS_PER_CHUNK}, ({left}) // {width})"


def position(test: ArrayTest) -> str:
    """Return the position of lane `l` of vector `t` of chunk `c`."""
    return f"c * {VECTORS_PER_CHUNK * lanes(test)} + t * {lanes(test)} + l"


def lanes(test: ArrayTest) -> int:
    """Return the number of elements in a vector."""
    return TESTED_BYTES // _itemsize(test)


def _itemsize(test: ArrayTest) -> int:
    return max(np.dtype(test.dtype).itemsize, 4)
