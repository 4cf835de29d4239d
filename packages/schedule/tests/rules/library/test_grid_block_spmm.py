"""The rule for blocks on grids of threads: by an intrinsic, or by threads with the reason. Results are
compared in `tests/integration/test_sparse_tensor_cores.py`."""

from __future__ import annotations

import pytest

from gossamer_ir.script import parse_module, print_module
from gossamer_ir.transform.specialize import specialize
from gossamer_machine import Grid, Machine
from gossamer_schedule.rules import schedule_report
from gossamer_testkit import script
from gossamer_testkit.bsr_product import bsr_product
from gossamer_testkit.sr_bcrs_product import sr_bcrs_product

GPU = Machine(
    grid=Grid(warp=32, block_threads=1024, shared_memory=49152, multiprocessors=108),
    block_products=(("float16", "product"),),
)


def report_of(dtype, machine=GPU, **sizes):
    return schedule_report(specialize(bsr_product(dtype), sizes), machine)


def bound(report):
    return {
        step.args["thread"]: step.args["loop"] for step in report.schedule.loop if step.op == "bind"
    }


@pytest.mark.parametrize(
    ("features", "tile"), [(None, None), (128, 64), (96, 32), (48, 16), (40, None)]
)
def test_an_intrinsic_multiplies_a_tile_of_features(features, tile):
    report = report_of("float16", **({} if features is None else {"feat": features}))
    assert report.rule == "grid_block_spmm"
    steps = report.schedule.loop
    assert [step.args["intrinsic"] for step in steps if step.op == "sparse_tensorize"] == [
        "product"
    ]
    splits = [step.args["factors"] for step in steps if step.op == "split"]
    assert splits == [*([] if tile is None else [(None, tile)]), (None, 32)]
    assert ("blockIdx.y" in bound(report)) == (tile is not None)


@pytest.mark.parametrize(
    ("dtype", "sizes", "reason"),
    [
        ("float32", {}, "these are float32 with sums in float32"),
        ("float16", {"bh": 1}, "one row or column"),
        ("float16", {"bw": 1}, "one row or column"),
        ("float16", {"feat": 1}, "there is one feature"),
    ],
)
def test_other_products_have_threads_and_the_reason(dtype, sizes, reason):
    report = report_of(dtype, **sizes)
    assert report.rule == "grid_block_spmm"
    assert set(bound(report)) == {"blockIdx.x", "blockIdx.y", "threadIdx.x"}
    assert reason in report.decisions[-1].why


def test_a_machine_without_intrinsics_has_threads():
    report = report_of("float16", Machine(grid=GPU.grid))
    assert "multiplies blocks of no dtype" in report.decisions[-1].why


def test_the_rule_is_for_blocks_and_machines_with_grids():
    assert report_of("float16", feat=0).rule is None
    assert schedule_report(parse_module(script("csr_spmm")), GPU).rule == "grid_rows"
    assert report_of("float16", Machine()).rule != "grid_block_spmm"


STRIPS = print_module(sr_bcrs_product("float16", height=16, width=16, feat=64))


def test_groups_of_columns_are_multiplied_as_blocks():
    report = schedule_report(parse_module(STRIPS), GPU)
    assert report.rule == "grid_block_spmm"
    assert "shared memory, in a pipeline of 3 stages" in report.decisions[-1].what
    swapped = STRIPS.replace(
        "T.float32(A[io, jo, ii, ji]) * T.float32(B[ji, k])",
        "T.float32(B[ji, k]) * T.float32(A[io, jo, ii, ji])",
    )
    assert schedule_report(parse_module(swapped), GPU).schedule == report.schedule


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (", padded=False", ""),
        ("B[ji, k]", "B[ji + 0 * io, k]"),
        ("N = T.sp.dense_fixed(n)", "N = T.sp.dense_fixed(n + 1)"),
        ("JI = T.sp.compressed_fixed(JO", "JI = T.sp.compressed_fixed(IO"),
        ("A[io, jo, ii, ji]", "A[io, jo, ji, ii]"),
    ],
)
def test_other_groups_are_not(old, new):
    text = STRIPS.replace(old, new)
    assert text != STRIPS
    if new == "A[io, jo, ji, ii]":
        text = text.replace("a, (IO, JO, II, JI)", "a, (IO, JO, JI, II)")
    assert schedule_report(parse_module(text), GPU).rule != "grid_block_spmm"
