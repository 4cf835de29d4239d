"""The test that no value of an array occurs twice, on one thread.

Values in a small range are marked in a list of all possible values. Others are sorted by their bytes, the
lowest first, so that equal values become neighbors.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gossamer_backend.compiled_checks.array_test import ArrayTest

DIGIT_BITS = 8
"""The bits of a digit, by which values are sorted at once: the offsets of all digits fit the L1 cache."""


def distinct_lines(k: int, test: ArrayTest) -> Iterator[str]:
    """Yield the test of array number k; nothing if it has none."""
    if test.distinct == "marked":
        yield from _marked_lines(k, test)
    elif test.distinct == "sorted":
        yield from _sorted_lines(k, test)


def _marked_lines(k: int, test: ArrayTest) -> Iterator[str]:
    """Yield the count of values that are marked already; a value outside the list is out of bounds."""
    yield f'SEEN{k} = T.alloc_buffer((span{k},), "uint8")'
    yield f'twice{k} = T.alloc_buffer((1,), "int64", scope="local")'
    yield f"twice{k}[0] = 0"
    yield f"for v in T.serial(span{k}):"
    yield f"    SEEN{k}[v] = T.uint8(0)"
    yield f"for e in T.serial(n{k}):"
    indent = "    "
    if test.is_padded:
        yield f"    if X{k}[e] != pad{k}:"
        indent *= 2
    at = f"T.int64(X{k}[e]) - least{k}"
    yield f"{indent}twice{k}[0] = twice{k}[0] + T.int64(SEEN{k}[{at}])"
    yield f"{indent}SEEN{k}[{at}] = T.uint8(1)"
    yield f"T.guard(twice{k}[0] == 0, X{k})"


def _sorted_lines(k: int, test: ArrayTest) -> Iterator[str]:
    """Yield the sort of the bits of all values but padding, and the count of equal neighbors."""
    bits = max(8 * np.dtype(test.dtype).itemsize, 2 * DIGIT_BITS)
    key = f"uint{max(bits, 32)}"
    for name in (f"KEYS{k}", f"MOVED{k}"):
        yield f'{name} = T.alloc_buffer((n{k},), "{key}")'
    yield f'STARTS{k} = T.alloc_buffer(({(1 << DIGIT_BITS) + 1},), "int64")'
    for name in (f"used{k}", f"twice{k}"):
        yield f'{name} = T.alloc_buffer((1,), "int64", scope="local")'
        yield f"{name}[0] = 0"
    yield f"for e in T.serial(n{k}):"
    indent = "    "
    if test.is_padded:
        yield f"    if X{k}[e] != pad{k}:"
        indent *= 2
    yield f"{indent}KEYS{k}[used{k}[0]] = T.{key}(X{k}[e])"
    yield f"{indent}used{k}[0] = used{k}[0] + 1"
    yield f"for d in T.serial({bits // (2 * DIGIT_BITS)}):"
    # Two digits in a round: the values are in the first array again.
    yield from _digit_lines(k, ("KEYS", "MOVED"), "2 * d", key=key)
    yield from _digit_lines(k, ("MOVED", "KEYS"), "2 * d + 1", key=key)
    yield f"for e in T.serial(T.max(used{k}[0] - 1, 0)):"
    yield f"    if KEYS{k}[e] == KEYS{k}[e + 1]:"
    yield f"        twice{k}[0] = twice{k}[0] + 1"
    yield f"T.guard(twice{k}[0] == 0, X{k})"


def _digit_lines(k: int, arrays: tuple[str, str], number: str, *, key: str) -> Iterator[str]:
    """Yield a counting sort by one digit from one array to the other, which keeps the order of equal
    digits."""
    source, target = (f"{name}{k}" for name in arrays)
    shift, mask = f"T.{key}({DIGIT_BITS} * ({number}))", f"T.{key}({(1 << DIGIT_BITS) - 1})"
    digit = f"T.int64(({source}[e] >> {shift}) & {mask})"
    yield f"    for b in T.serial({(1 << DIGIT_BITS) + 1}):"
    yield f"        STARTS{k}[b] = 0"
    yield f"    for e in T.serial(used{k}[0]):"
    yield f"        STARTS{k}[{digit} + 1] = STARTS{k}[{digit} + 1] + 1"
    yield f"    for b in T.serial({1 << DIGIT_BITS}):"
    yield f"        STARTS{k}[b + 1] = STARTS{k}[b + 1] + STARTS{k}[b]"
    yield f"    for e in T.serial(used{k}[0]):"
    yield f"        {target}[STARTS{k}[{digit}]] = {source}[e]"
    yield f"        STARTS{k}[{digit}] = STARTS{k}[{digit}] + 1"
