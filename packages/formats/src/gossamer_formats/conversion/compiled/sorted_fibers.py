"""Sorts the coordinates of each fiber by a program."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.compiled.program import (
    Compile,
    Operand,
    indented,
    run_program,
    widened,
)
from gossamer_formats.storage import Array, native_name

FACTS = (
    "monotone(OFFSETS)",
    "in_range(OFFSETS, 0, count + 1)",
    "has_value(OFFSETS, 0, 0)",
    "has_value(OFFSETS, fibers, count)",
)
"""What holds for the first slots of fibers."""


def sort_fibers(compile: Compile, listed: Array, offsets: Array) -> None:
    """Sort distinct numbers within each fiber, in place: merge pairs of ascending runs.

    A fiber often has few runs: those of the rows that it is made of.
    """
    at = widened("OFFSETS[{}]", native_name(offsets.dtype))
    begin, end = at.format("g"), at.format("g + 1")
    scalars = ("RUNS", "FIRST", "MIDDLE", "LEFT", "RIGHT")
    lines = [
        *(f'{name} = T.alloc_buffer((1,), "int64", scope="local")' for name in scalars),
        "for g in T.serial(fibers):",
        "    RUNS[0] = 1",
        f"    for s in T.serial({begin}, {end}):",
        f"        falls = s > {begin} and LISTED[s] < LISTED[T.max(s - 1, {begin})]",
        "        RUNS[0] = RUNS[0] + T.select(falls, 1, 0)",
        "    for level in T.serial(levels):",
        "        if (1 << level) < RUNS[0]:",
        f"            FIRST[0] = {begin}",
        "            MIDDLE[0] = -1",
        f"            for s in T.serial({begin} + 1, {end} + 1):",
        f"                if s == {end} or LISTED[T.min(s, {end} - 1)] < LISTED[s - 1]:",
        "                    m = MIDDLE[0]",
        "                    if m < 0:",
        "                        MIDDLE[0] = s",
        "                    else:",
        "                        low = FIRST[0]",
        *indented(_merge_lines(), 6),
        "                        FIRST[0] = s",
        "                        MIDDLE[0] = -1",
    ]
    longest = int(np.diff(offsets).max(initial=0))
    run_program(
        compile,
        lines,
        {
            "fibers": offsets.size - 1,
            "count": listed.size,
            "levels": longest.bit_length(),
            "LISTED": Operand(listed, "count"),
            "OFFSETS": Operand(offsets, "fibers + 1", FACTS),
            "MERGED": np.empty(longest, listed.dtype),
        },
    )


def _merge_lines() -> list[str]:
    """Return the statements that merge the runs [low, m) and [m, s)."""
    return [
        "LEFT[0] = low",
        "RIGHT[0] = m",
        "for o in T.serial(s - low):",
        "    i = LEFT[0]",
        "    j = RIGHT[0]",
        "    a = LISTED[T.min(i, m - 1)]",
        "    b = LISTED[T.min(j, s - 1)]",
        "    first = i < m and (j >= s or a < b)",
        "    MERGED[o] = T.select(first, a, b)",
        "    LEFT[0] = i + T.select(first, 1, 0)",
        "    RIGHT[0] = j + T.select(first, 0, 1)",
        "for o in T.serial(s - low):",
        "    LISTED[low + o] = MERGED[o]",
    ]
