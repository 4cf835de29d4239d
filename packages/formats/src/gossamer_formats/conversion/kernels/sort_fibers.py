"""Sorts the coordinates of each fiber by a kernel."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.kernels.kernel_call import ArrayArgument
from gossamer_formats.conversion.kernels.run_kernel import run_kernel
from gossamer_formats.conversion.kernels.statements import (
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
from gossamer_formats.conversion.recording.branch import RecordedValue
from gossamer_formats.conversion.recording.recorder import Recorder
from gossamer_ir.core.build import ONE, ZERO, add, index, index_var, sub
from gossamer_ir.nodes import Expr, For, Let, Load, Stmt, Store, Var
from gossamer_ir.support.arrays import Array


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
    # As long as the longest fiber: a fiber is merged there, and copied back before the next one.
    merged = recorder.compute(np.empty, longest, dtype)
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
            "MERGED": ArrayArgument(merged, dtype, (index_var("longest"),)),
        },
    )


def _longest(offsets: Array) -> int:
    return int(np.diff(offsets).max(initial=0))


def _fiber_count(offsets: Array) -> int:
    return offsets.size - 1


def _merge_sort(dtype: str, offsets_dtype: str) -> list[Stmt]:
    """Return the kernel. In each level, the runs of a fiber are merged in pairs."""
    fiber = index_var("g")
    begin = load("OFFSETS", fiber, offsets_dtype)
    end = load("OFFSETS", add(fiber, ONE), offsets_dtype)
    level = index_var("level")
    size = operation("shl", ONE, level)
    levels = loop(
        level.name,
        ZERO,
        index_var("levels"),
        [when(compare("lt", size, load_local("RUNS")), _merge_pairs(dtype, begin, end))],
    )
    starts = [
        each
        for name in ("RUNS", "FIRST", "MIDDLE", "LEFT", "RIGHT")
        for each in define_local(name, ZERO)
    ]
    body = [*_count_runs(dtype, begin, end), levels]
    return [*starts, loop(fiber.name, ZERO, index_var("fibers"), body)]


def _count_runs(dtype: str, begin: Expr, end: Expr) -> list[Stmt]:
    slot = index_var("s")
    before = _listed(operation("max", sub(slot, ONE), begin), dtype)
    falls = logical_and(compare("gt", slot, begin), compare("lt", _listed(slot, dtype), before))
    runs = add(load_local("RUNS"), select(falls, ONE, ZERO))
    return [store_local("RUNS", ONE), loop(slot.name, begin, end, [store_local("RUNS", runs)])]


def _merge_pairs(dtype: str, begin: Expr, end: Expr) -> list[Stmt]:
    """Return the statements that find the ends of runs, and merge every second one with that before it."""
    slot, middle = index_var("t"), index_var("m")
    here = _listed(operation("min", slot, sub(end, ONE)), dtype)
    falls = compare("lt", here, _listed(sub(slot, ONE), dtype))
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
    ends = when(logical_or(compare("eq", slot, end), falls), at_end)
    return [
        store_local("FIRST", begin),
        store_local("MIDDLE", index(-1)),
        loop(slot.name, add(begin, ONE), add(end, ONE), [ends]),
    ]


def _merge_runs(dtype: str, low: Expr, middle: Expr, end: Expr) -> list[Stmt]:
    """Return the statements that merge the runs from `low` to `middle` and from there to `end`."""
    output, left, right = index_var("o"), index_var("i"), index_var("j")
    count, takes_left = sub(end, low), Var("takes_left", "bool")
    lower = _listed(operation("min", left, sub(middle, ONE)), dtype)
    upper = _listed(operation("min", right, sub(end, ONE)), dtype)
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
        _copy_back(low, count, dtype),
    ]


def _copy_back(low: Expr, count: Expr, dtype: str) -> For:
    output = index_var("q")
    merged = Load("MERGED", (output,), dtype)
    return loop(output.name, ZERO, count, [Store("LISTED", (add(low, output),), merged)])


def _listed(at: Expr, dtype: str) -> Expr:
    return Load("LISTED", (at,), dtype)
