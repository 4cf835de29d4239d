"""Sorts the coordinates of each fiber by a program."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.compiled.program import Compile, run_program
from gossamer_formats.storage import Array


def sorted_in_fibers(compile: Compile, listed: Array, offsets: Array, span: int) -> Array:
    """Return numbers below `span`, sorted within each fiber."""
    in_order = np.empty(listed.size, np.int32)
    starts = np.zeros(span + 2, np.int32)
    fibers = np.empty(listed.size, np.int32)
    lines = [
        "for s in T.serial(count):",
        "    STARTS[T.int64(LISTED[s]) + 2] = STARTS[T.int64(LISTED[s]) + 2] + 1",
        "for c in T.serial(span):",
        "    STARTS[c + 1] = STARTS[c + 1] + STARTS[c]",
        "for g in T.serial(fibers):",
        "    for s in T.serial(OFFSETS[g], OFFSETS[g + 1]):",
        "        q = STARTS[T.int64(LISTED[s]) + 1]",
        "        STARTS[T.int64(LISTED[s]) + 1] = q + 1",
        "        FIBERS[T.int64(q)] = T.int32(g)",
        "for c in T.serial(span):",
        "    for q in T.serial(T.int64(STARTS[c]), T.int64(STARTS[c + 1])):",
        "        r = CURSORS[T.int64(FIBERS[q])]",
        "        CURSORS[T.int64(FIBERS[q])] = r + 1",
        "        SORTED[r] = T.int32(c)",
    ]
    arguments: dict[str, Array | int] = {
        "LISTED": listed,
        "OFFSETS": offsets,
        "STARTS": starts,
        "FIBERS": fibers,
        "CURSORS": offsets[:-1].copy(),
        "SORTED": in_order,
        "count": listed.size,
        "span": span,
        "fibers": offsets.size - 1,
    }
    run_program(compile, lines, arguments)
    return in_order
