"""The rule for scores over the blocks of a mask on grids of threads. Results are compared in
`tests/integration/test_block_attention.py`."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_machine import Grid, Machine
from gossamer_schedule.rules import schedule_report

GPU = Machine(
    grid=Grid(warp=32, block_threads=1024, shared_memory=49152, multiprocessors=108),
    block_products=(("float16", "product"),),
)
PROGRAM = """
@T.prim_func
def scores(q: T.handle, k: T.handle, s: T.handle, indptr: T.handle, indices: T.handle,
           mb: T.int64, nb: T.int64, nnzb: T.int64, bh: T.int64, bw: T.int64, feat: T.int64) -> None:
    IO = T.sp.dense_fixed(mb)
    JO = T.sp.compressed_varied(IO, (nb, nnzb), (indptr, indices), "int32")
    JO_detach = T.sp.dense_fixed(nb)
    II = T.sp.dense_fixed(bh)
    JI = T.sp.dense_fixed(bw)
    D = T.sp.dense_fixed(feat)
    Q = T.sp.match_buffer(q, (IO, II, D), "float16")
    K = T.sp.match_buffer(k, (JO_detach, JI, D), "float16")
    S = T.sp.match_buffer(s, (IO, JO, II, JI), "float32")
    with T.sp.iteration([IO, JO, II, JI, D], "SSSSR", "scores") as [io, jo, ii, ji, d]:
        with T.init():
            S[io, jo, ii, ji] = 0.0
        S[io, jo, ii, ji] = S[io, jo, ii, ji] + T.float32(Q[io, ii, d]) * T.float32(K[jo, ji, d])
"""
SIZES = {"bh": 32, "bw": 32, "feat": 64}


def report_of(text=PROGRAM, machine=GPU, **sizes):
    module = specialize(parse_module(text), {**SIZES, **sizes})
    return schedule_report(module, machine)


@pytest.mark.parametrize(
    ("sizes", "stages"),
    [({}, 3), ({"feat": 256}, 2), ({"bh": 16, "bw": 48, "feat": 32}, 3)],
    ids=str,
)
def test_rows_are_staged_in_a_pipeline(sizes, stages):
    report = report_of(**sizes)
    assert report.rule == "grid_block_sddmm"
    (step,) = [step for step in report.schedule.loop if step.op == "pipeline"]
    assert step.args == {"loop": "jo", "stages": stages}
    scopes = [
        step.args["scope"] for step in report.schedule.loop if step.op.startswith("reindex_cache")
    ]
    assert scopes == ["shared", "shared", "fragment"]


def test_factors_may_be_in_any_order():
    swapped = PROGRAM.replace(
        "T.float32(Q[io, ii, d]) * T.float32(K[jo, ji, d])",
        "T.float32(K[jo, ji, d]) * T.float32(Q[io, ii, d])",
    )
    assert report_of(swapped).rule == "grid_block_sddmm"


@pytest.mark.parametrize(
    "sizes",
    [
        {"bh": 8},
        {"bw": 24},
        {"feat": 16},
        {"feat": 40},
        {"bh": 128, "bw": 64},
        {"feat": 1024},
    ],
    ids=str,
)
def test_sizes_that_do_not_fill_tiles_or_fit_are_left_to_other_rules(sizes):
    assert report_of(**sizes).rule != "grid_block_sddmm"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("K[jo, ji, d])", "K[jo, ji, d] * T.float16(2))"),
        ("K[jo, ji, d])", "K[jo, ii, d])"),
        ("        with T.init():\n            S[io, jo, ii, ji] = 0.0\n", ""),
        (" + T.float32(Q", " - T.float32(Q"),
    ],
)
def test_other_programs_are_left_to_other_rules(old, new):
    assert old in PROGRAM
    assert report_of(PROGRAM.replace(old, new)).rule != "grid_block_sddmm"


@pytest.mark.parametrize(("sums", "is_multiplied"), [("int32", True), ("float32", False)])
def test_sums_have_the_dtype_of_the_instructions(sums, is_multiplied):
    text = PROGRAM.replace("float16", "int8").replace("float32", sums)
    text = text.replace("= 0.0", "= 0") if sums == "int32" else text
    machine = replace(GPU, block_products=(("int8", "product"),))
    assert (report_of(text, machine).rule == "grid_block_sddmm") == is_multiplied


def test_machines_without_tensor_cores_or_grids_have_other_rules():
    assert report_of(machine=Machine(grid=GPU.grid)).rule != "grid_block_sddmm"
    assert report_of(machine=Machine()).rule != "grid_block_sddmm"
