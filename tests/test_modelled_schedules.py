"""The models of costs assume what schedules and conversions do: the sizes in both agree."""

from __future__ import annotations

import re
from itertools import product

import msgspec
import numpy as np
import pytest
from scipy import sparse

from gossamer.operator_calls.program import StoredFormat, Variant, module_of
from gossamer.operators.spmm import PROGRAM as SPMM
from gossamer.operators.spmv import PROGRAM as SPMV
from gossamer_formats import format_named, from_scipy
from gossamer_formats.descriptions.sell import sell
from gossamer_formats.descriptions.tiled_csr import tiled_csr
from gossamer_ir.interchange.records import Stats, Target
from gossamer_ir.machine.hardware_params import hardware_params
from gossamer_schedule.rules import schedule_report
from gossamer_tune import Workload
from gossamer_tune.model.tiles_times_dense import TILE_COLUMNS, tiling
from gossamer_tune.properties.slices import HEIGHT, slice_fill

pytestmark = pytest.mark.unserialized

TARGETS = ("generic-cpu", "generic-cpu:vector_bits=256")
ROWS = (10, 300, 4096)
FEATURES = (16, 144, 512)
DIVIDED = r"panels of (\d+) rows, features in (\d+) tiles? of (\d+) vectors? "


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("columns", TILE_COLUMNS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_model_of_tiles_divides_products_as_their_schedule_does(columns, dtype, target):
    tiles = StoredFormat(tiled_csr(dtype, is_whole=True), (("tile_columns", columns),))
    adding = msgspec.structs.replace(SPMM, adds=True)
    for rows, features in product(ROWS, FEATURES):
        module = module_of(adding, Variant(dtype, features=features), tiles)
        stats = Stats(rows, 4 * columns, 8 * rows, 8, 0)
        report = schedule_report(module, Target.parse(target), stats)
        (divided,) = (
            found
            for decision in report.decisions
            if (found := re.match(DIVIDED, decision.what)) is not None
        )
        workload = Workload(features, dtype, hardware_params(Target.parse(target)))
        panel, feature_tiles, vectors = map(int, divided.groups())
        assert tiling(rows, workload, tile_columns=columns) == (feature_tiles, vectors, panel)


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
