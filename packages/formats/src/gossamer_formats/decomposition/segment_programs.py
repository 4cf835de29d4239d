"""Programs that find the segments of a large matrix, and store them in rows of fixed width."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.compiled.element_loop import LARGEST_CONSTANT
from gossamer_formats.conversion.compiled.program import Compile, Operand, run_program, widened
from gossamer_formats.decomposition.stored_segments import StoredSegments
from gossamer_formats.memory.new_arrays import NewArray, new_arrays
from gossamer_formats.permutation import UNSTORED
from gossamer_formats.storage import Array, native_name


def segment_lengths(
    compile: Compile, offsets: Array, columns: Array, *, span: int, partitions: int
) -> Array:
    """Return the number of elements of each row in each partition of `span` columns."""
    rows = offsets.size - 1
    lengths = np.zeros(rows * partitions, np.int32)
    begin, end = (widened(f"OFFSETS[{at}]", native_name(offsets.dtype)) for at in ("i", "i + 1"))
    lines = [
        "for i in T.parallel(rows):",
        f"    for e in T.serial({begin}, {end}):",
        f"        at = {widened('COLUMNS[e]', native_name(columns.dtype))} // span",
        "        LENGTHS[i, at] = LENGTHS[i, at] + 1",
    ]
    facts = (
        "monotone(OFFSETS)",
        "in_range(OFFSETS, 0, count + 1)",
        "has_value(OFFSETS, 0, 0)",
        "has_value(OFFSETS, rows, count)",
    )
    run_program(
        compile,
        lines,
        {
            "rows": rows,
            "count": columns.size,
            "partitions": partitions,
            "span": span,
            "OFFSETS": Operand(offsets, "rows + 1", facts),
            "COLUMNS": Operand(columns, "count"),
            # Two dimensions: each row has elements of its own, so that rows are counted in parallel.
            "LENGTHS": Operand(lengths, "rows, partitions"),
        },
    )
    return lengths


def store_segments(
    compile: Compile,
    matrix: tuple[Array, Array],
    starts: Array,
    lengths: Array,
    *,
    width: int,
    unused: int,
) -> StoredSegments:
    """Store segments of the columns and values of a matrix in rows of `width` slots.

    `unused` is the column of slots without an element.
    """
    columns, values = matrix
    size = starts.size * width
    found = StoredSegments(
        *new_arrays(
            [
                NewArray(size, native_name(columns.dtype), is_zero=False),
                NewArray(size, native_name(values.dtype), is_zero=False),
                NewArray(size, "int64", is_zero=False),
            ]
        )
    )
    column, value = (native_name(array.dtype) for array in matrix)
    slots = str(width) if width <= LARGEST_CONSTANT else "width"
    lines = [
        "for s in T.parallel(segments):",
        f"    for x in T.serial({slots}):",
        f"        t = s * {slots} + x",
        "        if x < LENGTHS[s]:",
        "            e = STARTS[s] + x",
        "            NEW_COLUMNS[t] = COLUMNS[e]",
        "            NEW_VALUES[t] = VALUES[e]",
        "            PERMUTATION[t] = e",
        "        else:",
        f"            NEW_COLUMNS[t] = T.{column}(unused)",
        f"            NEW_VALUES[t] = T.{value}(0)",
        f"            PERMUTATION[t] = {UNSTORED}",
    ]
    stored = f"segments * {slots}"
    run_program(
        compile,
        lines,
        {
            "segments": starts.size,
            "count": columns.size,
            "unused": unused,
            **({} if slots.isdigit() else {"width": width}),
            "STARTS": Operand(starts.astype(np.int64, copy=False), "segments"),
            "LENGTHS": Operand(lengths.astype(np.int64, copy=False), "segments"),
            "COLUMNS": Operand(columns, "count"),
            "VALUES": Operand(values, "count"),
            "NEW_COLUMNS": Operand(found.columns, stored),
            "NEW_VALUES": Operand(found.values, stored),
            "PERMUTATION": Operand(found.permutation, stored),
        },
    )
    return found
