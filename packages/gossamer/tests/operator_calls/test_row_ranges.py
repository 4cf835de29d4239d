"""Very long rows are added in segments, and calls that take long are made in ranges of rows."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.operator_calls import row_ranges
from gossamer.operator_calls.binding import bind_kernel
from gossamer.operator_calls.binding.bound_kernels import BoundKernels
from gossamer.operator_calls.operands import csr_matrix, long_rows
from gossamer_formats import from_scipy

LONG = 2**24 + 2**21


@pytest.fixture(scope="module")
def long_row() -> Any:
    """Three rows; the second has more elements than float32 can count, and the third has none."""
    indices = np.zeros(LONG + 2, np.int32)
    indices[:2] = 1, 2
    offsets = np.array([0, 2, LONG + 2, LONG + 2], np.int32)
    return sparse.csr_array((np.ones(LONG + 2, np.float32), indices, offsets), shape=(3, 3))


@pytest.mark.parametrize("is_tensor", [False, True])
def test_rows_that_float32_cannot_count_are_exact(long_row, is_tensor):
    A = from_scipy(long_row) if is_tensor else long_row
    ones = np.ones((3, 2), np.float32)
    wanted = np.array([2, LONG, 0], np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(gs.spmv(A, ones[:, 0].copy()), wanted)
        np.testing.assert_array_equal(gs.spmm(A, ones), np.stack([wanted, wanted], axis=1))
    out = np.full((3, 2), 4, np.float32)
    gs.spmm(A, ones, alpha=2, beta=0.5, out=out)
    np.testing.assert_array_equal(out[:, 1], 2 * wanted + 2)


def test_attention_is_exact_for_rows_that_float32_cannot_count(long_row):
    queries = np.zeros((3, 1), np.float32)
    values = np.array([[1.0], [3.0], [5.0]], np.float32)
    for _ in range(2):
        result = gs.attention(long_row, queries, queries, values)
        np.testing.assert_array_equal(result, [[4], [1], [0]])


def matrix(dtype: Any) -> Any:
    random = np.random.default_rng(3)
    dense = random.integers(1, 5, (40, 30)) * (random.random((40, 30)) < 0.4)
    dense[[0, 7, 8, 39]] = 0
    dense[20] = 1
    return sparse.csr_array(dense.astype(dtype))


@pytest.mark.parametrize("op", ["spmm", "spmv", "sddmm", "attention"])
@pytest.mark.parametrize("row", [2, 10**9])
@pytest.mark.parametrize("work", [1, 64, 10**9])
def test_blocks_and_ranges_do_not_change_results(monkeypatch, op, row, work):
    A, random = matrix(np.float32), np.random.default_rng(4)
    X, Y, V = (random.integers(-2, 3, (rows, 8)).astype(np.float32) for rows in (40, 30, 30))
    dense = {"spmm": (Y,), "spmv": (Y[:, 0].copy(),), "sddmm": (X, Y), "attention": (X, Y, V)}[op]
    wanted = getattr(gs, op)(A, *dense)
    monkeypatch.setattr(csr_matrix, "MAX_SUM", row)
    monkeypatch.setattr(long_rows, "SEGMENT_ELEMENTS", 3)
    monkeypatch.setattr(row_ranges, "RANGE_PRODUCTS", work)
    getattr(gs, op).forget()
    for operand in (A, from_scipy(A)):
        out = np.full(wanted.shape, np.nan, np.float32)
        assert getattr(gs, op)(operand, *dense, out=out) is out
        exact = op != "attention"
        np.testing.assert_allclose(out, wanted, 0 if exact else 1e-6, 0 if exact else 1e-6)
    getattr(gs, op).forget()


def test_ctrl_c_is_noticed_between_ranges(monkeypatch):
    """Each range takes some milliseconds, all of them several seconds."""
    rows, features = 2_000, 64
    indices = np.tile(np.arange(1_000, dtype=np.int32), rows)
    offsets = np.arange(0, 1_000 * rows + 1, 1_000, dtype=np.int32)
    A = from_scipy(sparse.csr_array((np.ones(len(indices), np.float32), indices, offsets)))
    B = np.ones((A.shape[1], features), np.float32)
    monkeypatch.setattr(row_ranges, "RANGE_PRODUCTS", 1 << 20)
    gs.spmm.forget()
    started = time.perf_counter()
    gs.spmm(A, B)
    whole = time.perf_counter() - started

    def calls() -> None:
        for _ in range(max(2, int(4 / whole))):
            gs.spmm(A, B)

    seen = []
    original = bind_kernel.arguments_by_rows

    def counted(*args: Any) -> Any:
        for part in original(*args):
            seen.append(time.perf_counter())
            if len(seen) == 5:
                threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)).start()
            yield part

    monkeypatch.setattr(bind_kernel, "arguments_by_rows", counted)
    # Processes that a shell starts in the background ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            calls()
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(seen) < 60, "an interrupt waits for the range, not for the call"
    np.testing.assert_array_equal(gs.spmm(A, B), np.full((rows, features), 1_000))


@pytest.mark.parametrize("op", ["spmm", "spmv", "sddmm", "attention"])
@pytest.mark.parametrize("work", [1, 64])
def test_bound_calls_are_made_in_ranges_and_read_new_values(monkeypatch, op, work):
    A, random = matrix(np.float32), np.random.default_rng(4)
    X, Y, V = (random.integers(-2, 3, (rows, 8)).astype(np.float32) for rows in (40, 30, 30))
    dense = {
        "spmm": (Y,), "spmv": (Y[:, 0].copy(),), "sddmm": (X, Y), "attention": (X, Y, V),
    }[op]  # fmt: skip
    function = getattr(gs, op)
    wanted, doubled = function(A, *dense), function(A, *dense[:-1], 2 * dense[-1])
    monkeypatch.setattr(row_ranges, "RANGE_PRODUCTS", work)
    out = np.full(wanted.shape, np.nan, np.float32)
    bound = function.bind(A, *dense, out=out, check=True)
    assert isinstance(bound, BoundKernels)
    assert bound.arguments["indptr"].shape == A.indptr.shape
    for result in (wanted, doubled):
        bound()
        np.testing.assert_allclose(out, result, 1e-6, 1e-6)
        dense[-1][...] *= 2


def test_ctrl_c_is_noticed_between_ranges_of_a_bound_call(monkeypatch):
    A, B = from_scipy(matrix(np.float32)), np.ones((30, 8), np.float32)
    monkeypatch.setattr(row_ranges, "RANGE_PRODUCTS", 1)
    out = np.zeros((40, 8), np.float32)
    bound = gs.spmm.bind(A, B, out=out)
    calls = bound.calls

    def interrupted() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    bound.calls = (*calls[:10], interrupted, *calls[10:])
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            bound()
    finally:
        signal.signal(signal.SIGINT, before)
    assert out[:8].any()
    assert not out[-8:].any(), "the ranges after the signal did not run"
