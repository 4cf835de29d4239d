"""Parallel loops run each iteration once, in chunks of equal weight, whatever runs their region."""

from __future__ import annotations

import re

import numpy as np
import pytest
from msgspec.structs import replace
from native_kernel import run_native

from gossamer_ir.core.build import ZERO, add, handle, index, index_var, mul, sub
from gossamer_ir.interchange.kernel_abi import OK, OUT_OF_BOUNDS
from gossamer_ir.nodes import (
    Buffer,
    Compare,
    For,
    Function,
    Guard,
    IfThenElse,
    Load,
    Module,
    ParallelFor,
    Param,
    Store,
)

ROW, N = index_var("i"), index_var("n")


def parallel(args, params):
    begin, end = index_var("begin"), index_var("end")
    inner = Function(
        "rows",
        (Param("begin", "int64"), Param("end", "int64"), *params),
        (For("i", begin, sub(end, begin), (Store("A", (ROW,), Load("B", (ROW,), "float32")),)),),
        buffers=(Buffer("A", (N,), "float32", "a"), Buffer("B", (N,), "float32", "b")),
    )
    weight = add(Load("P", (ROW,), "int64"), mul(N, ROW))
    return ParallelFor("rows", "i", ZERO, N, args, weight, index(100)), inner


def test_parallel_loops_call_through_the_workspace(module, text, checked):
    params = (Param("a", "handle"), Param("b", "handle"), Param("n", "int64"))
    call, inner = parallel((handle("y"), handle("x"), N), params)
    source = text(module(call, others=(inner,)))
    assert checked(source)
    assert re.search(r"call void %v\d+\(ptr @run_chunks, ptr %v\d+, i32 %v\d+, i32 0\)", source)
    assert "atomicrmw add ptr" in source
    assert "ptr noalias nocapture %p2, ptr noalias nocapture readonly %p3" in source


def test_regions_share_the_function_that_takes_chunks(module, text, checked):
    params = (Param("a", "handle"), Param("b", "handle"), Param("n", "int64"))
    call, inner = parallel((handle("y"), handle("x"), N), params)
    source = text(module(call, call, others=(inner,)))
    assert checked(source)
    assert source.count("define internal void @run_chunks(ptr %closure)") == 1
    assert len(re.findall(r"call void %v\d+\(ptr @run_chunks,", source)) == 2


def test_pointers_that_are_passed_twice_may_alias(module, text, checked):
    params = (Param("a", "handle"), Param("b", "handle"), Param("n", "int64"))
    call, inner = parallel((handle("x"), handle("x"), N), params)
    source = text(module(call, others=(inner,)))
    assert checked(source)
    assert "ptr nocapture %p2, ptr nocapture readonly %p3" in source


def counting(*body, params=()):
    """A parallel loop over n rows with the cumulative weights P, whose function writes X and Y."""
    begin, end = index_var("begin"), index_var("end")
    buffers = tuple(Buffer(name, (N,), "int64", name.lower()) for name in ("X", "Y", "P"))
    handles = tuple(Param(buffer.handle, "handle") for buffer in buffers)
    inner = Function(
        "rows",
        (Param("begin", "int64"), Param("end", "int64"), *handles, Param("n", "int64")),
        (
            Store("Y", (begin,), end),
            For("i", begin, sub(end, begin), body),
        ),
        buffers=buffers,
    )
    call = ParallelFor(
        "rows",
        "i",
        ZERO,
        N,
        (*(handle(buffer.handle) for buffer in buffers), N),
        Load("P", (ROW,), "int64"),
        index(1),
    )
    weights = Buffer("P", (add(N, index(1)),), "int64", "p")
    entry = Function(
        "main", (*handles, Param("n", "int64")), (call,), buffers=(*buffers[:2], weights)
    )
    return Module("flat", (entry, inner), "main")


ONCE = Store("X", (ROW,), add(Load("X", (ROW,), "int64"), index(1)))
"""Counts the iterations with a number."""
WEIGHTS = {
    "equal": [1] * 500,
    "none": [0] * 500,
    "one heavy row": [1] * 100 + [10_000] + [1] * 399,
    "heavy rows at the end": [0] * 300 + [7] * 200,
    "one row": [5],
    "no rows": [],
}


def one_after_the_other(function, data, threads, flags):
    """Runs a region: the second thread first, to show that the order does not matter."""
    for _ in range(threads):
        function(data)


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_each_iteration_runs_once_in_chunks_of_equal_weight(weights, threads):
    cumulative = np.cumsum([0, *weights]).astype(np.int64)
    rows = len(weights)
    counts, ends = np.zeros(rows + 1, np.int64), np.zeros(rows + 1, np.int64)
    run = run_native(
        counting(ONCE), [counts, ends, cumulative], rows, threads=threads,
        parallel=one_after_the_other,
    )  # fmt: skip
    assert run.status == OK
    assert counts.tolist() == [1] * rows + [0]
    (begins,) = np.nonzero(ends)
    share = -(-int(cumulative[-1]) // threads)
    for begin in begins:
        is_single = ends[begin] == begin + 1
        assert is_single or cumulative[ends[begin] - 1] - cumulative[begin] <= share
    if threads > 1 and rows > 1 and cumulative[-1]:
        assert begins.size > 1


def test_a_weight_may_have_branches():
    weight = IfThenElse(Compare("lt", ROW, index(100)), ROW, add(ROW, mul(ROW, ROW)))
    flat = counting(ONCE)
    entry, rows = flat.functions
    weighted = replace(entry, body=(replace(entry.body[0], weight=weight),))
    counts, ends = np.zeros(200, np.int64), np.zeros(200, np.int64)
    run = run_native(
        replace(flat, functions=(weighted, rows)), [counts, ends, np.arange(201)], 200, threads=2,
        parallel=one_after_the_other,
    )  # fmt: skip
    assert run.status == OK
    assert counts.tolist() == [1] * 200
    # The share of the second thread begins at half of the weight, where a row weighs its square.
    weights = [row if row < 100 else row + row * row for row in range(201)]
    assert np.searchsorted(weights, weights[-1] // 2) in np.flatnonzero(ends)


def test_a_loop_without_a_function_that_runs_regions_is_one_chunk():
    weights = np.arange(501, dtype=np.int64)
    counts, ends = np.zeros(500, np.int64), np.zeros(500, np.int64)
    assert run_native(counting(ONCE), [counts, ends, weights], 500, threads=8).status == OK
    assert counts.tolist() == [1] * 500
    assert ends.tolist() == [500] + [0] * 499


def test_a_bounds_check_that_fails_in_a_chunk_fails_the_loop():
    weights = np.arange(501, dtype=np.int64)
    counts, ends = np.zeros(500, np.int64), np.zeros(500, np.int64)
    guard = Guard(Compare("lt", ROW, index(400)), "X")
    run = run_native(
        counting(guard, ONCE), [counts, ends, weights], 500, threads=4,
        parallel=one_after_the_other,
    )  # fmt: skip
    assert run.status == OUT_OF_BOUNDS
    assert counts[400:].sum() == 0
