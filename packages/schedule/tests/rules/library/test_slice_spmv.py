"""The rule for slices of rows times a vector: which slices it takes, how many of their rows are lanes, and
correct results."""

from __future__ import annotations

import numpy as np
import pytest
from rule_programs import NARROW, TARGET, WIDE

from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_schedule import replay
from gossamer_schedule.rules import schedule_report
from gossamer_testkit import script

SLICED = script("sell_spmv_of_distinct_rows")
NOT_SLICED = {
    "rows may be repeated": SLICED.replace("    T.assume(distinct(ROWS))\n", ""),
    "rows may not exist": SLICED.replace("T.int64(ROWS[s, r]) < m", "T.int64(ROWS[s, r]) < n"),
    "an odd height": SLICED.replace("fixed(8", "fixed(9"),
    "a height of too many vectors": SLICED.replace("fixed(8", "fixed(72"),
    "a symbolic height": SLICED.replace("fixed(8", "fixed(longest"),
    "several elements of a row in a slot": SLICED.replace("(n, 1)", "(n, 2)"),
    "another place of the row": SLICED.replace("ROWS[s, r]", "ROWS[s, r - r]"),
    "no reduction": SLICED.replace("Y[T.int64(ROWS[s, r])] + A", "A"),
}


@pytest.mark.parametrize(("height", "lanes"), [(2, 2), (6, 2), (8, 8), (12, 4), (16, 8), (64, 8)])
def test_rows_of_a_slice_are_lanes(height, lanes):
    module = parse_module(SLICED.replace("fixed(8", f"fixed({height}"))
    report = schedule_report(module, TARGET)
    assert report.rule == "slice_spmv"
    assert report.decisions[0].what == f"the {height} rows of a slice in vectors of {lanes}"


@pytest.mark.parametrize("text", NOT_SLICED.values(), ids=NOT_SLICED)
def test_other_slices_run_as_written(text):
    assert schedule_report(parse_module(text), TARGET).rule is None


BLOCKED = """
@T.prim_func
def blocked(x: T.handle, y: T.handle, a: T.handle, p: T.handle, q: T.handle, r: T.handle, m: T.int64,
            n: T.int64, slices: T.int64, longest: T.int64, slots: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    S = T.sp.dense_fixed(slices)
    W = T.sp.dense_varied(S, (longest, slots), p, "int32")
    II = T.sp.dense_fixed(3)
    JI = T.sp.dense_fixed(2)
    R = T.sp.dense_fixed(16, parent=W)
    JO = T.sp.compressed_fixed(R, (n // 2, 1), q, "int32")
    SR = T.sp.dense_fixed(slices)
    RR = T.sp.dense_fixed(16)
    M = T.sp.dense_fixed(m)
    N = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (S, W, II, JI, R, JO), "float32")
    X = T.sp.match_buffer(x, (N,), "float32")
    Y = T.sp.match_buffer(y, (M,), "float32")
    ROWS = T.sp.match_buffer(r, (SR, RR), "int32")
    T.assume(distinct(ROWS))
    with T.sp.iteration([S, W, II, JI, R, JO], "SRSRSR", "blocked") as [s, w, ii, ji, r, jo]:
        if T.int64(ROWS[s, r]) * 3 + ii >= 0 and T.int64(ROWS[s, r]) * 3 + ii < m:
            Y[T.int64(ROWS[s, r]) * 3 + ii] = (
                Y[T.int64(ROWS[s, r]) * 3 + ii] + A[s, w, ii, ji, r, jo] * X[jo * 2 + ji])
"""
NOT_BLOCKED = {
    "rows may be repeated": BLOCKED.replace("    T.assume(distinct(ROWS))\n", ""),
    "rows may not exist": BLOCKED.replace("+ ii < m", "+ ii < n"),
    "rows of blocks overlap": BLOCKED.replace("* 3 + ii", "* 2 + ii"),
    "columns may not exist": BLOCKED.replace("X[jo * 2 + ji]", "X[jo * 3 + ji]"),
    "results without registers": BLOCKED.replace("fixed(3)", "fixed(30)").replace("* 3", "* 30"),
    "a symbolic number of rows": BLOCKED.replace("fixed(3)", "fixed(longest)"),
    "a column that is no reduction": BLOCKED.replace("SRSRSR", "SRSSSR"),
}


def test_block_rows_of_a_slice_are_lanes():
    report = schedule_report(parse_module(BLOCKED), TARGET)
    assert report.rule == "slice_spmv"
    assert report.decisions[0].what == "the 16 block rows of a slice in vectors of 8"


@pytest.mark.parametrize("text", NOT_BLOCKED.values(), ids=NOT_BLOCKED)
def test_other_slices_of_block_rows_run_as_written(text):
    assert schedule_report(parse_module(text), TARGET).rule is None


@pytest.mark.parametrize(("height", "rule"), [(8, "slice_spmv"), (9, None)])
def test_results_of_block_rows_need_registers(height, rule):
    """Each row of a block has two vectors, and there are 16 accumulators."""
    module = parse_module(
        BLOCKED.replace("fixed(3)", f"fixed({height})").replace("* 3", f"* {height}")
    )
    assert schedule_report(module, TARGET).rule == rule


DIAGONALS = """
@T.prim_func
def diagonals(x: T.handle, y: T.handle, a: T.handle, p: T.handle, q: T.handle, m: T.int64, n: T.int64,
              slices: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    S = T.sp.dense_fixed(slices)
    D = T.sp.compressed_varied(S, (n + 31, nnz), (p, q), "int32")
    R = T.sp.dense_fixed(32)
    M = T.sp.dense_fixed(m)
    N = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (S, D, R), "float32")
    X = T.sp.match_buffer(x, (N,), "float32")
    Y = T.sp.match_buffer(y, (M,), "float32")
    with T.sp.iteration([S, D, R], "SRS", "diagonals") as [s, d, r]:
        if s * 32 + r < m and d + r - 31 >= 0 and d + r - 31 < n:
            Y[s * 32 + r] = Y[s * 32 + r] + A[s, d, r] * X[d + r - 31]
"""
NOT_DIAGONALS = {
    "rows may not exist": DIAGONALS.replace("r < m", "r < n"),
    "rows of slices overlap": DIAGONALS.replace("s * 32", "s * 16"),
    "columns after the last one": DIAGONALS.replace("d + r - 31 < n", "d + r - 30 < n + 1"),
    "columns before the first one": DIAGONALS.replace("d + r - 31 >= 0", "d + r >= 0"),
    "a symbolic height": DIAGONALS.replace("fixed(32)", "fixed(slices)"),
    "rows that are no dimension": DIAGONALS.replace('"SRS"', '"SRR"'),
    "no reduction": DIAGONALS.replace("Y[s * 32 + r] + A", "A"),
}


@pytest.mark.parametrize(("target", "lanes"), [(TARGET, 16), (NARROW, 4), (WIDE, 16)])
def test_rows_of_diagonals_are_whole_vectors(target, lanes):
    report = schedule_report(parse_module(DIAGONALS), target)
    assert report.rule == "slice_spmv"
    assert report.decisions[0].what == f"the 32 rows of a slice in vectors of {lanes}"


@pytest.mark.parametrize("text", NOT_DIAGONALS.values(), ids=NOT_DIAGONALS)
def test_other_diagonals_run_as_written(text):
    assert schedule_report(parse_module(text), TARGET).rule is None


LOOP = """
@T.prim_func
def main(data: T.handle, indptr: T.handle, indices: T.handle, rows: T.handle, x: T.handle,
         y: T.handle, m: T.int64, n: T.int64, slices: T.int64, slots: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    A_data = T.match_buffer(data, (slots, 8, 1), "float32")
    ROWS_data = T.match_buffer(rows, (slices, 8), "int32")
    X_data = T.match_buffer(x, (n,), "float32")
    Y_data = T.match_buffer(y, (m,), "float32")
    W_indptr = T.match_buffer(indptr, (slices + 1,), "int32")
    J_indices = T.match_buffer(indices, (slots, 8, 1), "int32")
    T.assume(distinct(ROWS_data))
    T.assume(in_range(W_indptr, 0, slots + 1))
    T.assume(monotone(W_indptr))
    T.assume(in_range(J_indices, 0, n + 1))
    for s in T.serial(slices):
        for w in T.serial(T.int64(W_indptr[s + 1]) - T.int64(W_indptr[s])):
            for r in T.serial(8):
                for j in T.serial(1):
                    with T.block("product"):
                        vs, vw, vr, vj = T.axis.remap("SRSR", [s, w, r, j])
                        T.where(T.int64(J_indices[T.int64(W_indptr[vs]) + vw, vr, vj]) != n
                                and (T.int64(ROWS_data[vs, vr]) >= 0 and T.int64(ROWS_data[vs, vr]) < m))
                        Y_data[T.int64(ROWS_data[vs, vr])] = Y_data[T.int64(ROWS_data[vs, vr])] + (
                            A_data[T.int64(W_indptr[vs]) + vw, vr, vj]
                            * X_data[T.int64(J_indices[T.int64(W_indptr[vs]) + vw, vr, vj])])
"""


def sliced(lengths, columns):
    """The arrays of a matrix in slices of 8 rows, whose last rows may be missing, and the matrix."""
    random, slices = np.random.default_rng(len(lengths)), -(-len(lengths) // 8)
    padded = np.pad(lengths, (0, 8 * slices - len(lengths))).reshape(slices, 8)
    offsets = np.concatenate([[0], np.cumsum(padded.max(axis=1, initial=0))]).astype(np.int32)
    order = random.permutation(8 * slices).reshape(slices, 8)
    indices = np.full((offsets[-1], 8, 1), columns, np.int32)
    data = np.full((offsets[-1], 8, 1), np.nan, np.float32)
    matrix = np.zeros((8 * slices, columns), np.float32)
    for s, r in np.ndindex(slices, 8):
        held = np.sort(random.choice(columns, padded[s, r], replace=False))
        slots = offsets[s] + np.arange(held.size)
        indices[slots, r, 0], data[slots, r, 0] = held, random.integers(-3, 4, held.size)
        matrix[order[s, r], held] = data[slots, r, 0]
    arrays = {"data": data, "indptr": offsets, "indices": indices, "rows": order.astype(np.int32)}
    return arrays, matrix[: len(lengths)], slices


@pytest.mark.parametrize("target", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("lengths", [[], [0], [3] * 8, [0, 5, 1, 9, 0, 0, 2, 1, 4, 0, 9]])
def test_the_schedule_computes_the_product(lengths, target):
    """Rows after the last one of the matrix are stored, and skipped; so are slots without an element."""
    report = schedule_report(parse_module(SLICED), target)
    assert report.rule == "slice_spmv"
    scheduled = verify(replay(parse_module(LOOP), report.schedule.loop))
    arrays, matrix, slices = sliced(np.array(lengths, int), columns=9)
    x, y = np.arange(9, dtype=np.float32) - 3, np.ones(len(lengths), np.float32)
    sizes = {"m": len(lengths), "n": 9, "slices": slices, "slots": len(arrays["data"])}
    run(scheduled, arrays | {"x": x, "y": y} | sizes)
    np.testing.assert_array_equal(y, 1 + matrix @ x)
