"""The models of costs assume what schedules and conversions do: the sizes in both agree."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from scipy import sparse

from gossamer.operator_calls.program import StoredFormat, Variant, module_of
from gossamer.operators.spmv import PROGRAM as SPMV
from gossamer_formats import format_named, from_scipy
from gossamer_formats.descriptions.sell import sell
from gossamer_ir.interchange.records import Target
from gossamer_ir.machine.hardware_params import hardware_params
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_schedule.rules import schedule_report
from gossamer_testkit import script
from gossamer_tune import Workload
from gossamer_tune.model.csr_times_dense import csr_times_dense
from gossamer_tune.properties.matrix_properties import MatrixProperties, scheduled_stats
from gossamer_tune.properties.slices import HEIGHT, slice_fill

pytestmark = pytest.mark.unserialized


def test_the_model_of_slices_has_the_slices_of_conversions_and_of_the_schedule():
    assert format_named("sell").parameters == {"height": HEIGHT, "sigma": 0}
    slices = StoredFormat(sell(), (("height", HEIGHT),), is_whole=True)
    adding = msgspec.structs.replace(SPMV, adds=True)
    report = schedule_report(module_of(adding, Variant(), slices), Target("generic-cpu"))
    assert report.replaces_conversion
    assert report.decisions[0].what == f"the {HEIGHT} rows of a slice in vectors of {HEIGHT}"


@pytest.mark.parametrize("rows", [100, 5000, 40_000, 70_000])
def test_the_model_of_slices_has_the_fill_of_conversions(rows):
    lengths = np.random.default_rng(0).integers(0, 30, rows)
    indptr = np.concatenate([[0], lengths.cumsum()])
    columns = np.concatenate([np.arange(length) for length in lengths])
    matrix = sparse.csr_array((np.ones(columns.size, np.float32), columns, indptr), (rows, 30))
    stored = from_scipy(matrix).asformat("sell").arrays["data"]
    assert slice_fill(lengths) == matrix.nnz / stored.size


MACHINE = Target.parse("generic-cpu:l2=2097152,l3=16777216,cores=2")
MACHINE_LANES = hardware_params(MACHINE).lanes("float32")
FORMS = {"partial sums of a row": "added to several sums", "packed for each tile": "is packed"}
"""Schedules of CSR, by words of their decisions, with words of the reason that the model gives."""


def matrix_properties(rows, columns, mean):
    lengths = {"mean_row": float(mean), "row_deviation": 0.0, "longest_row": mean, "empty_rows": 0}
    return MatrixProperties(
        rows=rows,
        columns=columns,
        nnz=rows * mean,
        **lengths,
        block_fill={},
        bandwidth=0.5,
        fresh=0.5,
        group_columns=columns / 2,
        slice_fill=1.0,
    )


# Sizes at both sides of the limits: rows of 64 elements count as 64 to 79 do, and 56 to 63 as 56.
@pytest.mark.parametrize("features", [16, 32, 64, 128, 512, 520])
@pytest.mark.parametrize(("rows", "columns"), [(512, 2047), (2048, 512), (4884, 4884)])
@pytest.mark.parametrize("mean", [10, 31, 63, 70, 200])
def test_the_model_of_csr_has_its_default_schedule(rows, columns, mean, features):
    matrix = matrix_properties(rows, columns, mean)
    module = specialize(parse_module(script("csr_spmm")), {"feat_size": features})
    decisions = schedule_report(module, MACHINE, scheduled_stats(matrix)).decisions
    (found,) = csr_times_dense(matrix, Workload(features, hardware=hardware_params(MACHINE)))
    made = {decision.what for decision in decisions}
    # Aligned sums of several vectors load as much as one sum: the model has one form for both.
    if features > MACHINE_LANES and "the dense operand is read where it is" in made:
        made = {what for what in made if "partial sums of a row" not in what}
    for what, reason in FORMS.items():
        assert any(what in each for each in made) == (reason in found.reason)
