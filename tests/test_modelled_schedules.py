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
from gossamer_schedule.rules import schedule_report
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
