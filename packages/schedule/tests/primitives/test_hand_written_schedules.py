"""Hand-written schedules of SpMM and SpMV: each step keeps the result and leaves a valid module."""

from __future__ import annotations

import pytest

from gossamer_ir.interchange.records import Schedule
from gossamer_ir.interchange.serialization import dumps_record, loads_record
from gossamer_schedule import ScheduleBuilder, get_blocks, get_loops, replay
from gossamer_testkit import examples

SPMM_STEPS = (
    ("split", ("k",), {"factors": (None, 2, 4)}),
    ("reorder", ("i", "k_0", "j", "k_1", "k_2"), {}),
    ("cache_write", ("csrmm",), {"buffer": "C", "scope": "local"}),
    ("reverse_compute_at", ("csrmm_C_local",), {"loop": "k_0"}),
    ("decompose_reduction", ("csrmm",), {"loop": "j"}),
    ("split", ("k_c",), {"factors": (2, 4)}),
    ("unroll", ("k_1_init",), {}),
    ("unroll", ("k_c_0",), {}),
    ("unroll", ("k_1",), {}),
    ("vectorize", ("k_2_init",), {}),
    ("vectorize", ("k_c_1",), {}),
    ("vectorize", ("k_2",), {}),
    ("parallel", ("i",), {"weight": "T.int64(J_indptr[i]) + 4 * i", "grain": 20}),
)
SPMV_STEPS = (
    ("cache_write", ("csrmv",), {"buffer": "Y", "scope": "local"}),
    ("reverse_compute_at", ("csrmv_Y_local",), {"loop": "i"}),
    ("decompose_reduction", ("csrmv",), {"loop": "j"}),
    ("split", ("j",), {"factors": (None, 4)}),
    ("vectorize", ("j_1",), {}),
    ("parallel", ("i",), {"weight": "T.int64(J_indptr[i]) + i", "grain": 8}),
)


def apply_each(module, steps):
    """The builder after each step."""
    builder = ScheduleBuilder(module)
    for op, positional, keywords in steps:
        yield getattr(builder, op)(*positional, **keywords)


@pytest.mark.parametrize("features", [0, 1, 4, 7, 8, 19])
@pytest.mark.parametrize("is_constant", [True, False])
def test_spmm_keeps_its_result_after_each_step(spmm, require_spmm, features, is_constant):
    for builder in apply_each(spmm(features if is_constant else None), SPMM_STEPS):
        require_spmm(builder.module, features)


def test_spmm_at_the_position_stage_keeps_its_result_after_each_step(require_spmm):
    for builder in apply_each(examples.SPMM_POSITION, SPMM_STEPS):
        require_spmm(builder.module, 7)


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_spmv_keeps_its_result_after_each_step(require_spmv, rows):
    for builder in apply_each(examples.SPMV, SPMV_STEPS):
        require_spmv(builder.module, rows=rows)


@pytest.mark.parametrize("features", [None, 100, 128, 512])
def test_spmm_with_wide_tiles_has_the_expected_loops(spmm, features):
    steps = (("split", ("k",), {"factors": (None, 8, 16)}), *SPMM_STEPS[1:5])
    *_, builder = apply_each(spmm(features), steps)
    assert get_loops(builder.module) == (
        *("i", "k_0", "k_1_init", "k_2_init", "j", "k_1", "k_2", "k_c"),
    )
    assert get_blocks(builder.module) == ("csrmm_init", "csrmm", "csrmm_C_local")
    assert get_loops(builder.module, "csrmm_C_local") == ("i", "k_0", "k_c")


@pytest.mark.parametrize(
    ("module", "steps"), [(examples.SPMM, SPMM_STEPS), (examples.SPMV, SPMV_STEPS)]
)
def test_a_trace_that_went_over_the_wire_gives_the_same_module(module, steps):
    *_, builder = apply_each(module, steps)
    sent = dumps_record(Schedule(loop=builder.trace))
    assert replay(module, loads_record(sent, Schedule).loop) == builder.module


def test_scalable_split_keeps_the_result(spmm, require_spmm):
    builder = ScheduleBuilder(spmm()).split("k", factors=(None, 2, "2 * T.vscale()"))
    builder.reorder("i", "k_0", "j", "k_1", "k_2").cache_write("csrmm", buffer="C", scope="local")
    builder.reverse_compute_at("csrmm_C_local", loop="k_0").decompose_reduction("csrmm", loop="j")
    builder.vectorize("k_2").vectorize("k_2_init")
    sent = dumps_record(Schedule(loop=builder.trace))
    assert replay(spmm(), loads_record(sent, Schedule).loop) == builder.module
    require_spmm(builder.module, 7)


def test_rows_split_before_the_cache_are_guarded(require_spmv):
    builder = ScheduleBuilder(examples.SPMV)
    for op, name, keywords in (
        ("split", "i", {"factors": (None, 3)}),
        ("split", "j", {"factors": (None, 4)}),
        ("cache_write", "csrmv", {"buffer": "Y", "scope": "local"}),
        ("reverse_compute_at", "csrmv_Y_local", {"loop": "i_0"}),
        ("decompose_reduction", "csrmv", {"loop": "i_1"}),
        ("parallel", "i_0", {}),
    ):
        getattr(builder, op)(name, **keywords)
        require_spmv(builder.module)
