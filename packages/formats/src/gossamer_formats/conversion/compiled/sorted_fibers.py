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
    """Sort distinct numbers within each fiber, in place, by merging neighbors: pairs, then fours, and so on.

    Neighbors that are in order are not merged: a fiber is often made of a few ascending rows.
    """
    at = widened("OFFSETS[{}]", native_name(offsets.dtype))
    begin, end = at.format("g"), at.format("g + 1")
    lines = [
        'LEFT = T.alloc_buffer((1,), "int64", scope="local")',
        'RIGHT = T.alloc_buffer((1,), "int64", scope="local")',
        "for g in T.serial(fibers):",
        f"    end = {end}",
        "    for level in T.serial(levels):",
        f"        for pair in T.serial((({end}) - ({begin}) + (1 << level) - 1) >> (level + 1)):",
        f"            low = {begin} + (pair << (level + 1))",
        "            middle = T.min(low + (1 << level), end)",
        "            high = T.min(middle + (1 << level), end)",
        "            if middle < high:",
        "                if LISTED[middle] < LISTED[middle - 1]:",
        "                    LEFT[0] = low",
        "                    RIGHT[0] = middle",
        "                    for o in T.serial(high - low):",
        "                        i = LEFT[0]",
        "                        j = RIGHT[0]",
        "                        a = LISTED[T.min(i, middle - 1)]",
        "                        b = LISTED[T.min(j, high - 1)]",
        "                        first = i < middle and (j >= high or a < b)",
        "                        MERGED[o] = T.select(first, a, b)",
        "                        LEFT[0] = i + T.select(first, 1, 0)",
        "                        RIGHT[0] = j + T.select(first, 0, 1)",
        "                    for o in T.serial(high - low):",
        "                        LISTED[low + o] = MERGED[o]",
    ]
    longest = int(np.diff(offsets).max(initial=0))
    run_program(
        compile,
        lines,
        {
            "fibers": offsets.size - 1,
            "count": listed.size,
            "levels": max(longest - 1, 0).bit_length(),
            "LISTED": Operand(listed, "count"),
            "OFFSETS": Operand(offsets, "fibers + 1", FACTS),
            "MERGED": np.empty(longest, listed.dtype),
        },
    )
