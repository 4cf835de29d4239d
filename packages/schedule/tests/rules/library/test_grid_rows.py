"""The rule for grids of threads: which loops are threads, and how many a block has. Results are compared in
`tests/integration/test_gpu_operators.py`."""

from __future__ import annotations

import pytest
from rule_programs import CSR, DOT, SUM, module_of, scaled

from gossamer_ir.interchange.records import Stats
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_machine import Grid, Machine
from gossamer_schedule.rules import default_schedule, schedule_report
from gossamer_schedule.rules.library.grid_rows import grid_rows
from gossamer_schedule.rules.schedule_rule import RuleContext
from gossamer_testkit import script

GPU = Machine(grid=Grid(warp=32, block_threads=1024, shared_memory=49152, multiprocessors=108))


def bound(module, machine=GPU):
    """The axes of threads, with the loops that are bound to them."""
    steps = default_schedule(module, machine).loop
    return {step.args["thread"]: step.args["loop"] for step in steps if step.op == "bind"}


def threads(module, machine=GPU):
    """The constant factors of splits: threads of a block along its axes."""
    steps = default_schedule(module, machine).loop
    return [step.args["factors"][-1] for step in steps if step.op == "split"]


@pytest.mark.parametrize("body", [CSR + DOT, CSR + SUM, scaled("csr", "A[i, j] * R[i]")])
def test_rows_are_threads_where_a_value_belongs_to_a_row(body):
    assert bound(module_of(body)) == {"blockIdx.x": "i_0", "threadIdx.x": "i_1"}
    assert threads(module_of(body)) == [128]


def sddmm(features=None):
    module = parse_module(script("sddmm"))
    return module if features is None else specialize(module, {"feat_size": features})


@pytest.mark.parametrize("module", [module_of(scaled("csr", "A[i, j] * 2.0")), sddmm(features=7)])
def test_other_stored_elements_are_threads_whatever_their_rows_are(module):
    schedule = default_schedule(module, GPU)
    assert [step.op for step in schedule.coordinate] == ["sparse_fuse"]
    loops = bound(module)
    assert loops["blockIdx.x"].removesuffix("_0") == loops["threadIdx.x"].removesuffix("_1")


@pytest.mark.parametrize(("features", "lanes"), [(None, 32), (9, 16), (100, 32)])
def test_threads_of_a_warp_add_up_the_features_of_a_stored_element(features, lanes):
    module = sddmm(features)
    assert [step.op for step in default_schedule(module, GPU).coordinate] == ["sparse_fuse"]
    assert set(bound(module)) == {"blockIdx.x", "threadIdx.y", "threadIdx.x"}
    assert threads(module) == [128 // lanes, lanes]


@pytest.mark.parametrize(
    ("features", "dtype", "lanes", "width"),
    [(8, "float32", 2, 4), (128, "float32", 32, 4), (64, "float64", 32, 2), (64, "float16", 8, 8)],
)
def test_threads_load_vectors_of_the_features_that_they_add_up(features, dtype, lanes, width):
    text = script("sddmm").replace("float32", dtype)
    schedule = default_schedule(specialize(parse_module(text), {"feat_size": features}), GPU)
    splits = [step.args["factors"] for step in schedule.loop if step.op == "split"]
    assert splits == [(None, 128 // lanes), (None, lanes, width)]
    assert [step.op for step in schedule.loop][-1] == "vectorize"


@pytest.mark.parametrize(("features", "lanes"), [(None, 32), (100, 32), (16, 16), (17, 32), (1, 1)])
def test_features_are_threads_of_a_warp_and_rows_fill_the_block(features, lanes):
    module = parse_module(script("csr_spmm"))
    if features is not None:
        module = specialize(module, {"feat_size": features})
    assert set(bound(module)) == {"blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y"}
    assert threads(module) == [128 // lanes, lanes]


@pytest.mark.parametrize(
    ("features", "dtype", "lanes"),
    [
        (64, "float32", 2),
        (128, "float32", 4),
        (192, "float32", 2),
        (128, "float64", 2),
        (256, "float16", 4),
    ],
)
def test_a_thread_loads_vectors_of_features_where_rows_keep_whole_warps(features, dtype, lanes):
    text = script("csr_spmm").replace("float32", dtype)
    schedule = default_schedule(specialize(parse_module(text), {"feat_size": features}), GPU)
    splits = [step.args["factors"][-1] for step in schedule.loop if step.op == "split"]
    assert splits == [lanes, 4, 32]
    assert [step.op for step in schedule.loop].count("vectorize") == 3


@pytest.mark.parametrize(("rows", "lanes"), [(100, 1), (2000, 2), (4000, 4)])
def test_threads_for_few_rows_have_fewer_features(rows, lanes):
    module = specialize(parse_module(script("csr_spmm")), {"feat_size": 128})
    stats = Stats(rows=rows, columns=5000, nnz=10 * rows, longest_row=20, empty_rows=0)
    splits = [
        step.args["factors"][-1]
        for step in default_schedule(module, GPU, stats).loop
        if step.op == "split"
    ]
    assert splits == ([4, 32] if lanes == 1 else [lanes, 4, 32])


@pytest.mark.parametrize(("mean", "lanes"), [(3, None), (4, 4), (31, 16), (1000, 32)])
def test_threads_of_a_warp_add_up_long_rows(mean, lanes):
    stats = Stats(rows=100, columns=5000, nnz=100 * mean, longest_row=2 * mean, empty_rows=0)
    steps = default_schedule(module_of(CSR + DOT), GPU, stats).loop
    factors = [step.args["factors"][-1] for step in steps if step.op == "split"]
    assert factors == ([128] if lanes is None else [lanes, 128 // lanes])


@pytest.mark.parametrize(("mean", "is_flat"), [(3, False), (4, True), (100, True)])
def test_values_that_depend_on_long_rows_find_them(mean, is_flat):
    stats = Stats(rows=100, columns=5000, nnz=100 * mean, longest_row=2 * mean, empty_rows=0)
    schedule = default_schedule(module_of(scaled("csr", "A[i, j] * R[i]")), GPU, stats)
    assert [step.op for step in schedule.coordinate] == ["sparse_fuse"] * is_flat


@pytest.mark.parametrize("module", [module_of(CSR + DOT), parse_module(script("csr_spmm"))])
def test_elements_of_reductions_are_in_registers(module):
    steps = [step for step in default_schedule(module, GPU).loop if step.op == "cache_write"]
    assert [step.args["scope"] for step in steps] == ["local"]


def test_a_block_has_no_more_threads_than_the_machine_allows():
    small = Machine(grid=Grid(warp=8, block_threads=16, shared_memory=0, multiprocessors=1))
    assert threads(module_of(CSR + DOT), small) == [16]


def test_no_features_are_not_matched():
    module = specialize(parse_module(script("csr_spmm")), {"feat_size": 0})
    assert grid_rows(module, RuleContext(machine=GPU)) is None


def test_the_rule_is_for_machines_with_grids():
    module = module_of(CSR + DOT)
    assert grid_rows(module, RuleContext(machine=Machine())) is None
    assert schedule_report(module, GPU).rule == "grid_rows"
    assert schedule_report(module, Machine()).rule == "row_spmv"
