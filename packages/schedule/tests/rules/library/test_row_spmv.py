"""The rule for a number for each row: how many of its terms are lanes, and correct results. Rows in the lanes
of a vector are tested in `decisions/test_rows_in_lanes.py`.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from rule_programs import (
    AXES,
    CSR,
    DOT,
    NARROW,
    PRODUCT,
    STORED,
    SUM,
    TARGET,
    WIDE,
    as_lowered,
    machine,
    module_of,
    rows_of,
)

from gossamer_ir.interchange.records import Stats
from gossamer_ir.script import parse_module
from gossamer_schedule import replay
from gossamer_schedule.rules import default_schedule, schedule_report
from gossamer_schedule.rules.library.row_spmv import row_spmv
from gossamer_schedule.rules.patterns.row_reduction import row_reduction
from gossamer_schedule.rules.schedule_rule import RowThresholds, RuleContext
from gossamer_testkit.examples import SPMV

CONTIGUOUS = [(CSR + SUM, True), (AXES["ragged"] + SUM, True), (CSR + DOT, False)]
CONTIGUOUS += [(AXES["ragged"] + DOT, True), (STORED, True), (AXES["ell"] + SUM, True)]


@pytest.mark.parametrize(("body", "is_contiguous"), CONTIGUOUS)
def test_terms_at_positions_are_told_from_terms_at_coordinates(body, is_contiguous):
    assert row_reduction(module_of(body)).is_contiguous == is_contiguous


def lanes_and_remainder(body, *, stats=None, **sizes):
    """The lanes of the partial results, and the treatment of the remainder; None without vectors."""
    trace = default_schedule(module_of(body, **sizes), TARGET, stats).loop
    splits = [step.args["factors"] for step in trace if step.op == "split"]
    vectors = [step.args.get("remainder", "scalar") for step in trace if step.op == "vectorize"]
    return (splits[0][-1], vectors[0]) if vectors else None


MANY = Stats(rows=1 << 16, columns=1 << 16, nnz=4 << 16, longest_row=20, empty_rows=0)
VECTORS = [
    (CSR + DOT, None, None),
    (CSR + DOT, rows_of(2), None),
    (CSR + DOT, rows_of(4), None),
    (CSR + DOT, MANY, (4, "masked")),
    (CSR + DOT, rows_of(20), (8, "masked")),
    (CSR + DOT, rows_of(60), (8, "masked")),
    (AXES["wide"] + DOT, None, None),
    (CSR + SUM, None, (16, "masked")),
    (CSR + SUM, rows_of(2), (16, "masked")),
    (CSR + SUM, rows_of(2, longest=2), None),
    (CSR + SUM, rows_of(500), (64, "masked")),
    (AXES["wide"] + SUM, None, None),
]


@pytest.mark.parametrize(("body", "stats", "expected"), VECTORS)
def test_vectors_are_chosen_by_the_length_of_rows(body, stats, expected):
    assert lanes_and_remainder(body, stats=stats) == expected


def test_vectors_have_the_width_of_the_target():
    narrow = machine("vector_bits=256")
    split = default_schedule(module_of(CSR + SUM), narrow).loop[3]
    assert split.args["factors"] == (None, 8)


@pytest.mark.parametrize(
    ("bits", "dtype", "mean", "lanes"),
    [
        (256, "float32", 39, 4),
        (256, "float32", 40, 8),
        (256, "float64", 39, 4),
        (256, "float64", 40, 4),
        (512, "float32", 39, 8),
        (512, "float64", 39, 8),
        (128, "float32", 39, 8),
        (128, "float64", 39, 8),
    ],
)
def test_gathered_terms_fill_half_a_register_or_one_without_mask_registers(
    bits, dtype, mean, lanes
):
    target = machine(f"vector_bits={bits},gathers=moderate")
    module = module_of((CSR + DOT).replace("float32", dtype))
    steps = default_schedule(module, target, Stats(100, 100, 100 * mean, 50, 0)).loop
    assert [step.args["factors"] for step in steps if step.op == "split"] == [(None, lanes)]


def test_a_number_per_row_without_vectors_stays_in_a_register():
    body = CSR + DOT.replace("X[j]", "X[j // 2]")
    ops = [step.op for step in default_schedule(module_of(body), TARGET, rows_of(100)).loop]
    assert ops == ["cache_write", "reverse_compute_at", "decompose_reduction", "parallel"]


@pytest.mark.parametrize(
    ("gathers", "remainder"), [("fast", "masked"), ("moderate", "masked"), ("slow", None)]
)
def test_remainders_are_masked_where_gathers_are_not_slow(gathers, remainder):
    target = machine(f"vector_bits=512,gathers={gathers}")
    steps = default_schedule(module_of(CSR + DOT), target, Stats(100, 100, 3000, 50, 0)).loop
    assert [step.args.get("remainder") for step in steps if step.op == "vectorize"] == [remainder]


@pytest.mark.parametrize(
    ("bits", "gathers", "mean", "remainder"),
    [
        (512, "fast", 2, []),
        (512, "fast", 4, ["masked"]),
        (512, "fast", 100, ["masked"]),
        (256, "moderate", 3, []),
        (256, "moderate", 4, ["masked"]),
        (512, "moderate", 100, ["masked"]),
        (128, "moderate", 4, []),
        (128, "moderate", 20, ["masked"]),
        (512, "slow", 4, []),
        (512, "slow", 100, [None]),
    ],
)
def test_short_rows_use_vectors_where_gathers_and_masks_are_fast(bits, gathers, mean, remainder):
    target = machine(f"vector_bits={bits},gathers={gathers}")
    stats = Stats(1 << 16, 100, mean << 16, 20 * mean, 0)
    steps = default_schedule(module_of(CSR + DOT), target, stats).loop
    assert [step.args.get("remainder") for step in steps if step.op == "vectorize"] == remainder


@pytest.mark.parametrize(("columns", "remainder"), [(1 << 16, ["masked"]), (1 << 17, [])])
def test_short_rows_of_an_operand_that_fills_half_of_the_private_cache_run_one_term_at_a_time(
    columns, remainder
):
    target = machine(f"vector_bits=512,gathers=moderate,l2={1 << 20}")
    stats = Stats(columns, columns, 7 * columns, 100, 0)
    steps = default_schedule(module_of(CSR + DOT), target, stats).loop
    assert [step.args.get("remainder") for step in steps if step.op == "vectorize"] == remainder


@pytest.mark.parametrize(
    ("bits", "longest", "remainder"), [(256, 28, ["masked"]), (256, 29, []), (512, 28, [])]
)
def test_short_rows_of_similar_lengths_may_miss_the_private_cache_without_mask_registers(
    bits, longest, remainder
):
    target = machine(f"vector_bits={bits},gathers=moderate,l2={1 << 20}")
    stats = Stats(1 << 18, 1 << 18, 7 << 18, longest, 0)
    steps = default_schedule(module_of(CSR + DOT), target, stats).loop
    assert [step.args.get("remainder") for step in steps if step.op == "vectorize"] == remainder


def test_contiguous_terms_of_a_sibling_run_one_at_a_time_if_its_rows_are_short():
    def first(is_sibling):
        thresholds = RowThresholds(short_row=4.0 if is_sibling else 0.0)
        context = RuleContext(rows_of(3), is_sibling=is_sibling, thresholds=thresholds)
        report = row_spmv(module_of(CSR + SUM), context)
        return [decision.what for decision in report.decisions][1]

    assert first(is_sibling=True) == "one term at a time"
    assert first(is_sibling=False) == "16 partial results in lanes, the remainder masked"


OTHERS = {
    "features": CSR + PRODUCT,
    "no reduction": CSR + SUM.replace("C[i] + A[i, j]", "A[i, j]"),
    "two iterations": CSR + SUM + SUM[SUM.index("    with") :].replace("total", "again"),
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_other_programs_are_not_matched(text):
    assert row_spmv(module_of(text)) is None


PRODUCT_OF_VECTOR = """
@T.prim_func
def spmv(indptr: T.handle, indices: T.handle, a: T.handle, x: T.handle, y: T.handle, m: T.int64,
         n: T.int64, nnz: T.int64):
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))
    N = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
    X = T.sp.match_buffer(x, (N,), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "csrmv") as [i, j]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + A[i, j] * X[j]
"""
FAST = machine("vector_bits=512,gathers=fast")
SMALL_CACHES = machine("vector_bits=512,gathers=fast,l2=64")
"""Any matrix exceeds its caches."""
MACHINES = [WIDE, NARROW, FAST, SMALL_CACHES]


EQUAL_ROWS = replace(rows_of(20), equal_rows=1 << 20)


@pytest.mark.parametrize(
    "stats", [None, rows_of(2, 3), rows_of(20), rows_of(60), rows_of(500), EQUAL_ROWS]
)
@pytest.mark.parametrize("target", MACHINES, ids=["wide", "narrow", "fast gathers", "small caches"])
def test_the_schedule_computes_the_product(require_spmv, target, stats):
    report = schedule_report(parse_module(PRODUCT_OF_VECTOR), target, stats)
    assert report.rule == "row_spmv"
    scheduled = replay(as_lowered(SPMV), report.schedule.loop)
    for rows, columns in ((7, 9), (0, 3), (5, 40), (40, 3)):
        require_spmv(scheduled, rows=rows, columns=columns)


def prefetched_arrays(body, target, *, mean=20):
    """The arrays of which elements of later rows are prefetched, and how many vectors ahead."""
    steps = default_schedule(module_of(body), target, rows_of(mean)).loop
    return {step.args["buffer"]: step.args["distance"] for step in steps if step.op == "prefetch"}


@pytest.mark.parametrize(
    ("body", "target", "arrays"),
    [
        (CSR + DOT, SMALL_CACHES, {"A_data": 32, "J_indices": 32}),
        (AXES["int64"] + DOT, SMALL_CACHES, {"A_data": 32, "J_indices": 32}),
        (CSR + DOT, FAST, {}),
        (CSR + DOT, machine("vector_bits=512,gathers=moderate,l2=64"), {}),
        (AXES["ell"] + DOT, SMALL_CACHES, {}),
        (CSR + SUM, SMALL_CACHES, {}),
    ],
)
def test_elements_of_later_rows_are_prefetched_if_they_exceed_the_caches(body, target, arrays):
    assert prefetched_arrays(body, target) == arrays


def test_elements_of_short_rows_are_prefetched_by_as_many_elements():
    assert set(prefetched_arrays(CSR + DOT, SMALL_CACHES, mean=4).values()) == {32}
