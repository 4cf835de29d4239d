"""Kernels that find the segments of a large matrix, and store them in rows of fixed width."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from gossamer_formats.conversion.by_kernels.kernels.kernel_call import (
    ArrayArgument,
    KernelArguments,
    kernel_call,
)
from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import MAX_CONSTANT
from gossamer_formats.conversion.by_kernels.kernels.statements import (
    cast,
    compare,
    digits,
    let,
    load,
    loop,
    offsets_facts,
    store,
    when,
)
from gossamer_formats.decomposition.stored_segments import StoredSegments
from gossamer_formats.memory.new_arrays import ArrayKind, new_arrays
from gossamer_formats.permutation import UNSTORED
from gossamer_formats.registry.compiler import Compile
from gossamer_formats.value_dtypes import dtype_name
from gossamer_ir.core.build import ONE, ZERO, add, floordiv, index, index_var, mul, zero_of
from gossamer_ir.nodes import Binary, Const, Expr, For, Load, Stmt, Store, Var
from gossamer_support.arrays import Array


def segment_lengths(
    compile: Compile, offsets: Array, columns: Array, *, span: int, partitions: int
) -> Array:
    """Return the number of elements of each row in each partition of `span` columns."""
    rows = offsets.size - 1
    lengths = np.zeros(rows * partitions, np.int32)
    facts = offsets_facts("OFFSETS", index_var("rows"), index_var("count"))
    offsets_shape = (add(index_var("rows"), ONE),)
    # Two dimensions: each row has elements of its own, so that rows are counted in parallel.
    lengths_shape = (index_var("rows"), index_var("partitions"))
    offsets_dtype, columns_dtype = dtype_name(offsets.dtype), dtype_name(columns.dtype)
    _run(
        compile,
        [_count_segments(offsets_dtype, columns_dtype)],
        {
            "rows": rows,
            "count": columns.size,
            "partitions": partitions,
            "span": span,
            "OFFSETS": ArrayArgument(offsets, offsets_dtype, offsets_shape, facts),
            "COLUMNS": ArrayArgument(columns, columns_dtype, (index_var("count"),)),
            "LENGTHS": ArrayArgument(lengths, "int32", lengths_shape),
        },
    )
    return lengths


def _count_segments(offsets_dtype: str, columns_dtype: str) -> For:
    row, element, at = index_var("i"), index_var("e"), index_var("at")
    begin, end = (load("OFFSETS", at, offsets_dtype) for at in (row, add(row, ONE)))
    partition = floordiv(load("COLUMNS", element, columns_dtype), index_var("span"))
    longer = Binary("add", Load("LENGTHS", (row, at), "int32"), Const("int32", "1"))
    count: list[Stmt] = [let(at.name, partition), Store("LENGTHS", (row, at), longer)]
    return _parallel(row, index_var("rows"), [loop(element.name, begin, end, count)])


def _parallel(var: Var, end: Expr, body: Sequence[Stmt]) -> For:
    return replace(loop(var.name, ZERO, end, body), kind="parallel")


def _run(compile: Compile, body: Sequence[Stmt], arguments: KernelArguments) -> None:
    kernel, passed = kernel_call(compile, body, arguments)
    kernel.run_trusted(*passed)


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
    column, value = (dtype_name(array.dtype) for array in matrix)
    kinds = tuple(ArrayKind(dtype, is_zero=False) for dtype in (column, value, "int64"))
    segments_in_rows = StoredSegments(*new_arrays(kinds, size, size, size))
    slots = index(width) if width <= MAX_CONSTANT else index_var("width")
    count, segments = (index_var("count"),), (index_var("segments"),)
    stored = (mul(*segments, slots),)
    start_dtype, length_dtype = (dtype_name(array.dtype) for array in (starts, lengths))
    _run(
        compile,
        [_store_segments(slots, (start_dtype, length_dtype), (column, value))],
        {
            "segments": starts.size,
            "count": columns.size,
            "unused": unused,
            "width": width,
            "STARTS": ArrayArgument(starts, start_dtype, segments),
            "LENGTHS": ArrayArgument(lengths, length_dtype, segments),
            "COLUMNS": ArrayArgument(columns, column, count),
            "VALUES": ArrayArgument(values, value, count),
            "NEW_COLUMNS": ArrayArgument(segments_in_rows.columns, column, stored),
            "NEW_VALUES": ArrayArgument(segments_in_rows.values, value, stored),
            "PERMUTATION": ArrayArgument(segments_in_rows.permutation, "int64", stored),
        },
    )
    return segments_in_rows


def _store_segments(
    slots: Expr, segment_dtypes: tuple[str, str], element_dtypes: tuple[str, str]
) -> For:
    """Return the loop for dtypes of starts and lengths, and of columns and values."""
    (start_dtype, length_dtype), (column, value) = segment_dtypes, element_dtypes
    segment, position, destination, element = (index_var(name) for name in ("s", "x", "t", "e"))
    at, source = (destination,), (element,)
    stores: list[Stmt] = [
        let(element.name, add(load("STARTS", segment, start_dtype), position)),
        Store("NEW_COLUMNS", at, Load("COLUMNS", source, column)),
        Store("NEW_VALUES", at, Load("VALUES", source, value)),
        store("PERMUTATION", destination, element),
    ]
    fill: list[Stmt] = [
        Store("NEW_COLUMNS", at, cast(index_var("unused"), column)),
        Store("NEW_VALUES", at, zero_of(value)),
        store("PERMUTATION", destination, index(UNSTORED)),
    ]
    is_element = compare("lt", position, load("LENGTHS", segment, length_dtype))
    body: list[Stmt] = [
        let(destination.name, digits(segment, slots, position)),
        when(is_element, stores, fill),
    ]
    return _parallel(segment, index_var("segments"), [loop(position.name, ZERO, slots, body)])
