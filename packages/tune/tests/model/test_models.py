"""The models of costs: sizes, and how costs grow."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gossamer_ir.machine.hardware_params import HardwareParams
from gossamer_tune import Workload, features_of
from gossamer_tune.format_choice import MODELS
from gossamer_tune.model.operand_loads import load_cycles

MATRIX = sparse.random_array((400, 600), density=0.1, format="csr", rng=np.random.default_rng(0))
FEATURES = features_of(MATRIX.shape, MATRIX.indptr, MATRIX.indices)


def test_loads_cost_more_from_each_larger_cache():
    hardware = HardwareParams()
    sizes = [1 << 14, 1 << 18, 1 << 21, 1 << 24, 1 << 26, 1 << 30]
    costs = [load_cycles(size, hardware) for size in sizes]
    assert costs == sorted(costs)
    assert len(set(costs)) == len(costs)


@pytest.mark.parametrize("model", MODELS)
def test_more_features_cost_more(model):
    few, more = (model(FEATURES, Workload("spmm", features)) for features in (32, 256))
    assert all(a.cycles < b.cycles for a, b in zip(few, more, strict=True))


@pytest.mark.parametrize("model", MODELS)
def test_double_precision_costs_more(model):
    single, double = (
        model(FEATURES, Workload("spmm", 64, dtype)) for dtype in ("float32", "float64")
    )
    assert all(a.cycles < b.cycles for a, b in zip(single, double, strict=True))


def test_only_csr_is_expected_for_a_vector():
    found = [estimate.format for model in MODELS for estimate in model(FEATURES, Workload("spmv"))]
    assert found == ["csr"]
