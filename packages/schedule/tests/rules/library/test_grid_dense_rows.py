"""The rule for sums over any format on grids of threads: which loops are threads, and what each keeps in a
register. Results are compared in `tests/integration/test_gpu_formats.py`."""

from __future__ import annotations

import pytest

from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_machine import Grid, Machine
from gossamer_schedule.rules import schedule_report

GPU = Machine(grid=Grid(warp=32, block_threads=1024, shared_memory=49152, multiprocessors=108))
HEADER = """
@T.prim_func
def product(a: T.handle, b: T.handle, c: T.handle, ptr: T.handle, idx: T.handle,
            m: T.int64, n: T.int64, most: T.int64, groups: T.int64, f: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    IO = T.sp.dense_fixed(m)
    JO = T.sp.dense_varied(IO, (most, groups), ptr)
    II = T.sp.dense_fixed(8)
    JI = T.sp.compressed_fixed(JO, (n, 4), idx)
    N = T.sp.dense_fixed(n)
    F = T.sp.dense_fixed(f)
    A = T.sp.match_buffer(a, (IO, JO, II, JI), "float32")
    B = T.sp.match_buffer(b, (N, F), "float32")
"""
STRIPS = (
    HEADER
    + """
    C = T.sp.match_buffer(c, (IO, II, F), "float32")
    with T.sp.iteration([IO, JO, II, JI, F], "SRSRS", "sums") as [io, jo, ii, ji, k]:
        with T.init():
            C[io, ii, k] = 0.0
        C[io, ii, k] = C[io, ii, k] + A[io, jo, ii, ji] * B[ji, k]
"""
)
ROWS = (
    HEADER
    + """
    M = T.sp.dense_fixed(m * 8)
    C = T.sp.match_buffer(c, (M, F), "float32")
    with T.sp.iteration([IO, JO, II, JI, F], "SRSRS", "sums") as [io, jo, ii, ji, k]:
        C[io * 8 + ii, k] = C[io * 8 + ii, k] + A[io, jo, ii, ji] * B[ji, k]
"""
)
BELOW = (
    STRIPS.replace("II = T.sp.dense_fixed(8)", "II = T.sp.dense_fixed(8, parent=JO)")
    .replace("compressed_fixed(JO", "compressed_fixed(II")
    .replace("(IO, II, F)", "(IO, R, F)")
    .replace("    N = ", "    R = T.sp.dense_fixed(8)\n    N = ")
)
"""The rows of a strip are below its groups, so that they have no init where there are no groups."""
VECTOR = (
    STRIPS.replace("[ji, k]", "[ji, 0]")
    .replace(", F]", "]")
    .replace(", k]", "]")
    .replace("SRSRS", "SRSR")
    .replace("(IO, II, F)", "(IO, II)")
)


def report_of(text, machine=GPU, **sizes):
    return schedule_report(specialize(parse_module(text), sizes), machine)


def bound(report):
    steps = report.schedule.loop
    return [(step.args["thread"], step.args["loop"]) for step in steps if step.op == "bind"]


def test_each_element_has_a_thread():
    report = report_of(STRIPS)
    assert report.rule == "grid_dense_rows"
    assert dict(bound(report)) == {
        "blockIdx.z": "ii", "blockIdx.x": "io_0", "blockIdx.y": "k_0",
        "threadIdx.y": "io_1", "threadIdx.x": "k_1",
    }  # fmt: skip
    assert report.decisions[0].what == "each element in a register"


def test_an_index_that_counts_rows_of_strips_selects_two_places():
    assert bound(report_of(ROWS)) == bound(report_of(STRIPS))


def test_elements_without_features_have_a_thread_each():
    assert dict(bound(report_of(VECTOR)))["threadIdx.x"] == "ii_1"
    alone = report_of(VECTOR.replace("dense_fixed(8)", "dense_fixed(1)"))
    assert dict(bound(alone)) == {"blockIdx.x": "io_0", "threadIdx.x": "io_1"}


def test_an_init_with_loops_of_its_own_has_threads_too():
    loops = bound(report_of(BELOW))
    assert loops[:5] == bound(report_of(STRIPS))
    assert [loop for _, loop in loops[5:]] == [
        "ii_init", "io_init_0", "k_init_0", "io_init_1", "k_init_1",
    ]  # fmt: skip


def test_elements_that_may_not_exist_are_not_read_before_the_first_term():
    shorter = ROWS.replace("dense_fixed(m * 8)", "dense_fixed(m * 7)")
    ops = [step.op for step in report_of(shorter).schedule.loop]
    assert "bind" in ops
    assert "cache_write" not in ops
    guarded = shorter.replace(
        "        C[io * 8", "        if io * 8 + ii < m * 7:\n            C[io * 8"
    )
    assert "cache_write" in [step.op for step in report_of(guarded).schedule.loop]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("dense_fixed(f)", "dense_fixed(0)"),
        ("C[io * 8 + ii, k]", "C[io * 4 + ii, k]"),
        ("C[io * 8 + ii, k]", "C[io * 8 + ji, k]"),
        ("C[io * 8 + ii, k]", "C[io, k]"),
        ("+ A[io, jo, ii, ji]", "* 2.0 + A[io, jo, ii, ji]"),
    ],
)
def test_other_programs_are_not_matched(old, new):
    assert report_of(ROWS.replace(old, new)).rule is None


def test_one_element_has_no_threads():
    assert report_of(VECTOR.replace("(8)", "(1)"), m=1).rule is None


def test_the_rule_is_for_machines_with_grids():
    assert report_of(STRIPS, Machine()).rule != "grid_dense_rows"
