"""The models of costs assume what schedules and conversions do: the sizes in both agree."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import sparse

from gossamer.operator_calls.operator_program import StoredFormat, Variant, module_of
from gossamer.operators.spmm import PROGRAM as SPMM
from gossamer.operators.spmv import PROGRAM as SPMV
from gossamer_formats import format_named, from_scipy
from gossamer_formats.descriptions.row_groups import row_groups
from gossamer_formats.descriptions.sell import sell
from gossamer_heuristics.csr_form import CsrForm, csr_form
from gossamer_heuristics.gathered_rows import row_loads
from gossamer_heuristics.summed_tiles import max_group_vectors, number_of_tiles
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_machine import Machine
from gossamer_schedule.rules import schedule_report
from gossamer_schedule.rules.decisions.gather_tiling import tiles_of
from gossamer_support.message_texts import amount
from gossamer_testkit import script
from gossamer_tune.properties.matrix_properties import (
    GROUP_HEIGHTS,
    GroupedColumns,
    MatrixProperties,
    RowLengths,
    properties_of,
    scheduled_stats,
)
from gossamer_tune.properties.slices import HEIGHT, HEIGHTS, slice_fill

pytestmark = pytest.mark.unserialized


def test_the_model_of_slices_has_the_slices_of_conversions_and_of_the_schedule():
    assert format_named("sell").parameters == {"height": HEIGHT, "sigma": 0}
    adding = replace(SPMV, adds=True)
    for height in HEIGHTS:
        slices = StoredFormat(sell(), (("height", height),), is_whole=True)
        report = schedule_report(module_of(adding, Variant(), slices), Machine())
        assert report.replaces_conversion
        assert report.decisions[0].what == f"the {height} rows of a slice in vectors of {HEIGHT}"


@pytest.mark.parametrize(
    ("rows", "height"), [(100, 8), (5000, 8), (40_000, 8), (70_000, 8), (70_000, 16)]
)
def test_the_model_of_slices_has_the_fill_of_conversions(rows, height):
    lengths = np.random.default_rng(0).integers(0, 30, rows)
    indptr = np.concatenate([[0], lengths.cumsum()])
    columns = np.concatenate([np.arange(length) for length in lengths])
    matrix = sparse.csr_array((np.ones(columns.size, np.float32), columns, indptr), (rows, 30))
    stored = from_scipy(matrix).asformat("sell", height=height).arrays["data"]
    assert slice_fill(lengths, height=height) == matrix.nnz / stored.size


@pytest.mark.parametrize("height", GROUP_HEIGHTS)
def test_the_model_of_groups_has_the_fill_of_conversions(height):
    rng = np.random.default_rng(0)
    matrix = sparse.random_array((48, 60), density=0.4, format="csr", dtype=np.float32, rng=rng)
    stored = from_scipy(matrix).asformat("row_groups", height=height).arrays["data"]
    properties = properties_of(matrix.shape, matrix.indptr, matrix.indices)
    assert properties.group_fill[height] == pytest.approx(matrix.nnz / stored.size)


MACHINE = Machine(private_cache=2 << 20, shared_cache=16 << 20, cores=2)
STEPS_OF_FORMS = {
    "packed_sums": {"rfactor", "cache_region"},
    "sums": {"rfactor"},
    "packed_tiles": {"cache_region"},
    "gathered_rows": set(),
}
"""The steps that make partial sums and that pack, of the schedule of each form."""
ALIGNED_SUMS = {"rfactor", "align"}
"""Sums of aligned vectors load as much as one sum: the model has one form for both."""


def matrix_properties(rows, columns, mean):
    groups = GroupedColumns(fresh=0.5, distinct=columns / 2)
    return MatrixProperties(
        rows=rows,
        columns=columns,
        nnz=rows * mean,
        lengths=RowLengths(float(mean), 0.0, longest=mean, empty=0),
        block_fill={},
        bandwidth=0.5,
        groups=groups,
        near_groups=GroupedColumns(fresh=1.0, distinct=0.0),
        slice_fill={HEIGHT: 1.0},
        group_fill={},
    )


# Sizes at both sides of the limits: rows of 64 elements count as 64 to 79 do, and 56 to 63 as 56.
@pytest.mark.parametrize("features", [16, 32, 64, 128, 512, 520])
@pytest.mark.parametrize(("rows", "columns"), [(512, 2047), (2048, 512), (4884, 4884)])
@pytest.mark.parametrize("mean", [10, 31, 63, 70, 200])
def test_the_default_schedule_of_csr_has_the_form_that_the_model_expects(
    rows, columns, mean, features
):
    stats = scheduled_stats(matrix_properties(rows, columns, mean))
    module = specialize(parse_module(script("csr_spmm")), {"feat_size": features})
    steps = {step.op for step in schedule_report(module, MACHINE, stats).schedule.loop}
    form = csr_form(features, "float32", MACHINE, stats)
    made = steps & {"rfactor", "cache_region"}
    is_aligned = form == "gathered_rows" and steps >= ALIGNED_SUMS
    assert made == ({"rfactor"} if is_aligned else STEPS_OF_FORMS[form])


def test_the_sizes_of_the_test_above_have_every_form():
    sizes = [(512, 2047), (2048, 512), (4884, 4884)]
    matrices = [matrix_properties(*size, mean) for size in sizes for mean in (10, 31, 70, 200)]
    forms = {
        csr_form(features, "float32", MACHINE, scheduled_stats(matrix))
        for features in (16, 32, 512)
        for matrix in matrices
    }
    assert forms == {*STEPS_OF_FORMS} == {*get_args(CsrForm)}


# Below and above a quarter of the shared cache, rows that are used rarely and often, and partial vectors.
@pytest.mark.parametrize(
    ("features", "columns", "mean", "is_aligned", "tiles"),
    [
        (128, 8192, 10, True, 0),
        (512, 8192, 10, False, 4),
        (96, 16_384, 40, True, 0),
        (96, 16_384, 10, False, 1),
        (40, 8192, 10, False, 0),
    ],
)
def test_the_default_schedule_of_csr_loads_rows_as_the_model_expects(
    features, columns, mean, is_aligned, tiles
):
    stats = scheduled_stats(matrix_properties(columns, columns, mean))
    loads = row_loads(features, "float32", MACHINE, stats)
    module = specialize(parse_module(script("csr_spmm")), {"feat_size": features})
    steps = {step.op for step in schedule_report(module, MACHINE, stats).schedule.loop}
    assert (loads.is_aligned, loads.prefetched_tiles) == (is_aligned, tiles)
    assert ("align" in steps, "prefetch" in steps) == (is_aligned, tiles > 0)
    if tiles:
        scheduled, _ = tiles_of(
            features, "float32", machine=MACHINE, is_aligned=False, is_prefetched=True
        )
        assert scheduled.tiles == tiles


# Aligned vectors of a small operand, loads across cache lines, prefetches, one vector, and partial vectors.
@pytest.mark.parametrize(
    ("features", "columns", "mean"),
    [(128, 2048, 10), (256, 8192, 10), (512, 8192, 10), (16, 2048, 10), (40, 8192, 10)],
)
@pytest.mark.parametrize("height", GROUP_HEIGHTS)
def test_the_default_schedule_of_groups_has_the_tiles_that_the_model_expects(
    height, features, columns, mean
):
    stats = scheduled_stats(matrix_properties(columns, columns, mean))
    groups = StoredFormat(row_groups(), (("height", height),), is_whole=True)
    module = specialize(module_of(SPMM, Variant(), groups), {"feat_size": features})
    report = schedule_report(module, MACHINE, stats)
    steps = {step.op for step in report.schedule.loop}
    loads = row_loads(features, "float32", MACHINE, stats, rows=height)
    assert ("align" in steps, "prefetch" in steps) == (loads.is_aligned, loads.prefetched_tiles > 0)
    vectors = -(-features // MACHINE.lanes("float32")) + loads.is_aligned
    tiles = number_of_tiles(vectors, max_group_vectors(height, MACHINE))
    (tile,) = (one.what for one in report.decisions if one.what.startswith("a tile of"))
    assert f"by {amount(-(-vectors // tiles), 'vector')} of" in tile
