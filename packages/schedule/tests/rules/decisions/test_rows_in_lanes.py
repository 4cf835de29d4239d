"""Short rows in the lanes of a vector: when that pays and is possible."""

from __future__ import annotations

import pytest
from rule_programs import machine

from gossamer_ir.interchange.records import Stats
from gossamer_ir.script import parse_module
from gossamer_schedule.rules import schedule_report
from gossamer_schedule.rules.library.row_spmv import row_spmv
from gossamer_schedule.rules.schedule_rule import RuleContext

TEXT = """
@T.prim_func
def spmv(a: T.handle, x: T.handle, y: T.handle, p: T.handle, q: T.handle, m: T.int64, n: T.int64,
         nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q), sorted=False, unique=False)
    N = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
    X = T.sp.match_buffer(x, (N,), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "spmv") as [i, j]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + A[i, j] * X[j]
"""
INIT = "        with T.init():\n            Y[i] = 0.0\n"
FAST = machine("gathers=fast")


def rows_of(mean, longest):
    return Stats(rows=1000, columns=1000, nnz=int(mean * 1000), longest_row=longest, empty_rows=0)


SHORT = rows_of(2, 6)


def decisions_in_lanes(*, text=TEXT, target=FAST, stats=SHORT, is_sibling=False):
    """The decisions of the rule; None if rows are not lanes."""
    report = row_spmv(parse_module(text), RuleContext(stats, is_sibling=is_sibling, machine=target))
    has_lanes = report is not None and report.decisions[0].what.startswith("rows in lanes")
    return report.decisions if has_lanes else None


@pytest.mark.parametrize(
    ("dtype", "bits", "lanes", "windows"),
    [
        ("float32", 512, 8, [32]),
        ("float64", 512, 8, [32]),
        ("float32", 256, 8, []),
        ("float64", 128, 2, []),
    ],
)
def test_short_rows_are_lanes_and_share_windows_in_registers_of_512_bits(
    dtype, bits, lanes, windows
):
    target = machine(f"gathers=fast,vector_bits={bits}")
    decisions = decisions_in_lanes(text=TEXT.replace('"float32"', f'"{dtype}"'), target=target)
    splits = [step.args["factors"] for step in decisions[0].steps if step.op == "split"]
    assert splits == [(None, lanes)]
    annotations = [step.args for step in decisions[1].steps if step.op == "annotate"]
    assert [step["value"] for step in annotations if step["key"] == "window"] == windows
    assert ("windows of 32" in decisions[1].what) == bool(windows)


@pytest.mark.parametrize(
    "stats", [None, rows_of(5, 8), rows_of(4, 9), rows_of(2, 7), rows_of(0.25, 1)]
)
def test_longer_rows_and_rows_of_other_lengths_run_one_by_one(stats):
    assert decisions_in_lanes(stats=stats) is None


@pytest.mark.parametrize(
    ("options", "mean", "are_lanes"),
    [
        ("gathers=moderate", 2, True),
        ("gathers=moderate", 3, False),
        ("gathers=moderate,vector_bits=256", 2, False),
        ("gathers=slow", 2, False),
    ],
)
def test_rows_are_lanes_where_gathers_are_moderate_if_they_share_windows(options, mean, are_lanes):
    decisions = decisions_in_lanes(target=machine(options), stats=rows_of(mean, 3 * mean))
    assert (decisions is not None) == are_lanes


def test_rows_of_a_part_run_one_by_one():
    assert decisions_in_lanes(is_sibling=True) is None


OTHERS = {
    "contiguous terms": TEXT.replace(" * X[j]", ""),
    "differences": TEXT.replace("Y[i] + A", "Y[i] - A"),
    "without an init": TEXT.replace(INIT, ""),
    "features": TEXT.replace("(I,)", "(I, K)").replace("N = T", "K = T.sp.dense_fixed(n)\n    N = T")
    .replace('[I, J], "SR"', '[I, J, K], "SRS"').replace("[i, j]:", "[i, j, k]:")
    .replace("Y[i]", "Y[i, k]"),
}  # fmt: skip


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_rows_of_other_programs_are_not_lanes(text):
    assert decisions_in_lanes(text=text) is None


def test_the_default_schedule_says_why():
    report = schedule_report(parse_module(TEXT), FAST, rows_of(2, 6))
    assert report.rule == "row_spmv"
    assert all(decision.why for decision in report.decisions)
    assert report.decisions[-1].steps[0].op == "parallel"
