"""Sorts the coordinates of each fiber by a kernel."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.by_kernels.kernels.kernel_call import ArrayArgument, run_kernel
from gossamer_formats.conversion.by_kernels.kernels.statements import (
    compare,
    define_local,
    let,
    load,
    load_local,
    logical_and,
    logical_or,
    loop,
    offsets_facts,
    operation,
    select,
    store_local,
    when,
)
from gossamer_formats.conversion.by_kernels.recording.branch import RecordedValue
from gossamer_formats.conversion.by_kernels.recording.recorder import Recorder
from gossamer_ir.core.build import ONE, ZERO, add, index, index_var, sub
from gossamer_ir.nodes import Allocate, Buffer, Expr, For, Let, Load, Stmt, Store, Var
from gossamer_support.arrays import Array


def sort_fibers(
    recorder: Recorder,
    listed: tuple[RecordedValue, RecordedValue],
    dtype: str,
    offsets: tuple[RecordedValue, str],
) -> None:
    """Sort distinct integers within each fiber, in place: merge pairs of ascending runs.

    `listed`: the integers and how many there are; `offsets`: the first slots of fibers and their dtype. A
    fiber often has few runs: those of the rows that it is made of.
    """
    array, count = listed
    longest = recorder.compute(_longest, offsets[0])
    fibers, total = index_var("fibers"), index_var("count")
    facts = offsets_facts("OFFSETS", fibers, total)
    run_kernel(
        recorder,
        _merge_sort(dtype, offsets[1]),
        {
            "fibers": recorder.compute(_fiber_count, offsets[0]),
            "count": count,
            "levels": recorder.compute(int.bit_length, longest),
            "longest": longest,
            "LISTED": ArrayArgument(array, dtype, (total,)),
            "OFFSETS": ArrayArgument(offsets[0], offsets[1], (add(fibers, ONE),), facts),
        },
    )


def _longest(offsets: Array) -> int:
    return int(np.diff(offsets).max(initial=0))


def _fiber_count(offsets: Array) -> int:
    return offsets.size - 1


def _merge_sort(dtype: str, offsets_dtype: str) -> list[Stmt]:
    """Return the kernel. In each level, the runs of a fiber are merged in pairs.

    A fiber is sorted in buffers of its iteration, as long as the longest one, and copied back to its own
    slots: iterations share nothing, so that they can run on several threads.
    """
    fiber, level, length = index_var("g"), index_var("level"), index_var("length")
    begin = load("OFFSETS", fiber, offsets_dtype)
    end = load("OFFSETS", add(fiber, ONE), offsets_dtype)
    levels = loop(
        level.name,
        ZERO,
        index_var("levels"),
        [
            when(
                compare("lt", operation("shl", ONE, level), load_local("RUNS")),
                _merge_pairs(dtype, length),
            )
        ],
    )
    sort = [*_own_buffers(dtype), _copy_in(dtype, length), levels, _copy_back(dtype, length)]
    body: list[Stmt] = [
        let("first", begin),
        let(length.name, sub(end, begin)),
        *define_local("RUNS", ONE),
        _count_runs(dtype, length),
        when(compare("gt", load_local("RUNS"), ONE), sort),
    ]
    return [loop(fiber.name, ZERO, index_var("fibers"), body)]


def _own_buffers(dtype: str) -> list[Stmt]:
    """Return the statements that allocate the state of a fiber that is sorted."""
    longest = (index_var("longest"),)
    buffers: list[Stmt] = [Allocate(Buffer(name, longest, dtype)) for name in ("SORTED", "MERGED")]
    cells = [define_local(name, ZERO) for name in ("FIRST", "MIDDLE", "LEFT", "RIGHT")]
    return [*buffers, *(stmt for cell in cells for stmt in cell)]


def _count_runs(dtype: str, length: Expr) -> Stmt:
    slot = add(index_var("first"), index_var("s"))
    falls = compare("lt", _load_listed(add(slot, ONE), dtype), _load_listed(slot, dtype))
    runs = add(load_local("RUNS"), select(falls, ONE, ZERO))
    count = loop("s", ZERO, sub(length, ONE), [store_local("RUNS", runs)])
    return when(compare("gt", length, ONE), [count])


def _copy_in(dtype: str, length: Expr) -> For:
    slot = index_var("c")
    listed = _load_listed(add(index_var("first"), slot), dtype)
    return loop(slot.name, ZERO, length, [Store("SORTED", (slot,), listed)])


def _copy_back(dtype: str, length: Expr) -> For:
    slot = index_var("b")
    at = add(index_var("first"), slot)
    return loop(slot.name, ZERO, length, [Store("LISTED", (at,), _load_sorted(slot, dtype))])


def _merge_pairs(dtype: str, length: Expr) -> list[Stmt]:
    """Return the statements that find the ends of runs, and merge every second one with that before it."""
    slot, middle = index_var("t"), index_var("m")
    here = _load_sorted(operation("min", slot, sub(length, ONE)), dtype)
    falls = compare("lt", here, _load_sorted(sub(slot, ONE), dtype))
    is_first = compare("lt", middle, ZERO)
    merge = [
        *_merge_runs(dtype, index_var("low"), middle, slot),
        store_local("FIRST", slot),
        store_local("MIDDLE", index(-1)),
    ]
    at_end: list[Stmt] = [
        let(middle.name, load_local("MIDDLE")),
        let("low", load_local("FIRST")),
        when(is_first, [store_local("MIDDLE", slot)], merge),
    ]
    ends = when(logical_or(compare("eq", slot, length), falls), at_end)
    return [
        store_local("FIRST", ZERO),
        store_local("MIDDLE", index(-1)),
        loop(slot.name, ONE, add(length, ONE), [ends]),
    ]


def _merge_runs(dtype: str, low: Expr, middle: Expr, end: Expr) -> list[Stmt]:
    """Return the statements that merge the runs from `low` to `middle` and from there to `end`."""
    output, left, right = index_var("o"), index_var("i"), index_var("j")
    count, takes_left = sub(end, low), Var("takes_left", "bool")
    lower = _load_sorted(operation("min", left, sub(middle, ONE)), dtype)
    upper = _load_sorted(operation("min", right, sub(end, ONE)), dtype)
    is_left = logical_and(
        compare("lt", left, middle),
        logical_or(compare("ge", right, end), compare("lt", lower, upper)),
    )
    merge: list[Stmt] = [
        let(left.name, load_local("LEFT")),
        let(right.name, load_local("RIGHT")),
        Let(takes_left, is_left),
        Store("MERGED", (output,), select(takes_left, lower, upper)),
        store_local("LEFT", add(left, select(takes_left, ONE, ZERO))),
        store_local("RIGHT", add(right, select(takes_left, ZERO, ONE))),
    ]
    return [
        store_local("LEFT", low),
        store_local("RIGHT", middle),
        loop(output.name, ZERO, count, merge),
        _copy_merged(low, count, dtype),
    ]


def _copy_merged(low: Expr, count: Expr, dtype: str) -> For:
    output = index_var("q")
    merged = Load("MERGED", (output,), dtype)
    return loop(output.name, ZERO, count, [Store("SORTED", (add(low, output),), merged)])


def _load_listed(at: Expr, dtype: str) -> Expr:
    return Load("LISTED", (at,), dtype)


def _load_sorted(at: Expr, dtype: str) -> Expr:
    return Load("SORTED", (at,), dtype)
