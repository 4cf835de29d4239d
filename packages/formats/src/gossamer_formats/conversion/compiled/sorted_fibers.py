"""Sorts the coordinates of each fiber by a program."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.compiled.program import Compile, Operand, run_program, widened
from gossamer_formats.storage import Array, native_name

FACTS = (
    "monotone(OFFSETS)",
    "in_range(OFFSETS, 0, count + 1)",
    "has_value(OFFSETS, 0, 0)",
    "has_value(OFFSETS, fibers, count)",
)
"""What holds for the first slots of fibers."""


def sort_fibers(compile: Compile, listed: Array, offsets: Array) -> None:
    """Sort distinct numbers within each fiber, in place, by merging ascending runs.

    The runs of a fiber are few: those of the rows that it is made of.
    """
    at = widened("OFFSETS[{}]", native_name(offsets.dtype))
    begin, end = at.format("g"), at.format("g + 1")
    lines = [
        'MIDDLE = T.alloc_buffer((1,), "int64", scope="local")',
        'LEFT = T.alloc_buffer((1,), "int64", scope="local")',
        'RIGHT = T.alloc_buffer((1,), "int64", scope="local")',
        "for g in T.serial(fibers):",
        f"    MIDDLE[0] = {begin}",
        f"    for s in T.serial({begin} + 1, {end} + 1):",
        f"        if s == {end} or LISTED[T.min(s, {end} - 1)] < LISTED[s - 1]:",
        "            m = MIDDLE[0]",
        f"            if m > {begin}:",
        f"                LEFT[0] = {begin}",
        "                RIGHT[0] = m",
        f"                for o in T.serial(s - {begin}):",
        "                    i = LEFT[0]",
        "                    j = RIGHT[0]",
        "                    a = LISTED[T.min(i, m - 1)]",
        "                    b = LISTED[T.min(j, s - 1)]",
        "                    first = i < m and (j >= s or a < b)",
        "                    MERGED[o] = T.select(first, a, b)",
        "                    LEFT[0] = i + T.select(first, 1, 0)",
        "                    RIGHT[0] = j + T.select(first, 0, 1)",
        f"                for o in T.serial(s - {begin}):",
        f"                    LISTED[{begin} + o] = MERGED[o]",
        "            MIDDLE[0] = s",
    ]
    longest = int(np.diff(offsets).max(initial=0))
    run_program(
        compile,
        lines,
        {
            "fibers": offsets.size - 1,
            "count": listed.size,
            "LISTED": Operand(listed, "count"),
            "OFFSETS": Operand(offsets, "fibers + 1", FACTS),
            "MERGED": np.empty(longest, listed.dtype),
        },
    )
