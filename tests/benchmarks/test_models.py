"""Models of the benchmark: oracles are gradients, cases survive files, errors and goals are computed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from benchmarks.models import (
    graph_convolution,
    masked_attention,
    pruned_layer,
    relational_convolution,
    voxel_convolution,
)
from benchmarks.models.model_case import ModelCase, read_model_case, write_model_case
from benchmarks.models.model_problem import random_arrays, relative_error
from benchmarks.parts.models import ModelTime, model_times_sheet, models_sheet

RNG = np.random.default_rng(5)
MATRIX = sparse.random(5, 5, 0.5, "csr", np.float64, RNG)
STRUCTURE = {"indptr": MATRIX.indptr, "indices": MATRIX.indices, "values": MATRIX.data}


def random(**shapes):
    return {name: RNG.standard_normal(shape) for name, shape in shapes.items()}


CASES = {
    "gcn": (
        graph_convolution.gcn_oracle,
        {**STRUCTURE, **random(x=(5, 3), w1=(3, 4), w2=(4, 2), b1=(4,), b2=(2,), seed=(5, 2))},
        ("w1", "w2", "b1", "b2"),
    ),
    "graphsage": (
        graph_convolution.sage_oracle,
        {
            **STRUCTURE,
            **random(x=(5, 3), w1=(3, 4), w1_root=(3, 4), w2=(4, 2), w2_root=(4, 2)),
            **random(b1=(4,), b2=(2,), seed=(5, 2)),
        },
        ("w1", "w1_root", "w2", "w2_root", "b1", "b2"),
    ),
    "rgcn": (
        relational_convolution.rgcn_oracle,
        {
            "edge_index": np.array([[0, 1, 1, 4], [2, 2, 3, 0]]),
            "edge_type": np.array([0, 0, 1, 1]),
            **random(x=(5, 2), weights=(2, 2, 2), w_root=(2, 2), b=(2,), seed=(5, 2)),
        },
        ("x", "weights", "w_root", "b"),
    ),
    "attention": (
        masked_attention.attention_oracle,
        {
            "indptr": np.arange(0, 11, 2),
            "indices": np.array([0, 1, 1, 2, 0, 2, 3, 4, 2, 4]),
            **random(q=(2, 5, 3), k=(2, 5, 3), v=(2, 5, 3), seed=(2, 5, 3)),
        },
        ("q", "k", "v"),
    ),
    "pruned": (
        pruned_layer.pruned_oracle,
        {**STRUCTURE, **random(x=(4, 5), b=(5,), seed=(4, 5))},
        ("x", "values", "b"),
    ),
    "convolution": (
        voxel_convolution.convolution_oracle,
        {
            "pairs": np.array([[1, 0, 1, 0], [0, 0, 1, 1]]),
            "ends": np.array([1, 3, 4]),
            **random(x=(2, 3), weights=(3, 3, 2), b=(2,), seed=(2, 2)),
        },
        ("x", "weights", "b"),
    ),
}


@pytest.mark.parametrize("model", CASES)
def test_the_gradients_of_an_oracle_are_differences_of_its_output(model):
    oracle, arrays, leaves = CASES[model]
    results = oracle(arrays)
    for name in leaves:
        direction = RNG.standard_normal(arrays[name].shape)
        sides = [
            (oracle({**arrays, name: arrays[name] + step * direction})["output"] * arrays["seed"])
            for step in (1e-6, -1e-6)
        ]
        slope = (sides[0] - sides[1]).sum() / 2e-6
        assert slope == pytest.approx((results[name] * direction).sum(), rel=1e-5, abs=1e-7)


def test_a_case_survives_files(tmp_path):
    case = ModelCase("gcn", "training", {"x": np.ones(3)}, ("x",), {"columns": 7})
    again = read_model_case(tmp_path, write_model_case(case, tmp_path))
    assert again.arrays["x"].tolist() == [1, 1, 1]
    assert (again.leaves, again.sizes, again.is_training) == (("x",), {"columns": 7}, True)


def test_errors_are_relative_to_the_norm_of_each_array():
    expected = (np.array([3.0, 4.0]), np.array([100.0]))
    assert relative_error(np.array([3.0, 4.5, 100.0]), expected) == pytest.approx(0.1)
    assert relative_error(np.array([3.0, 4.0]), expected) == 0
    assert np.isnan(relative_error(np.array([3.0, np.nan]), expected))
    assert np.isnan(relative_error(np.ones(1), expected))


def test_weights_are_scaled_by_their_rows():
    arrays = random_arrays(1, weights=(3, 400, 30), x=(400, 30))
    assert arrays["weights"].std() == pytest.approx(0.05, rel=0.05)
    assert arrays["x"].std() == pytest.approx(1, rel=0.05)


def test_a_moved_bias_keeps_values_before_relu_away_from_zero():
    values, bias = RNG.standard_normal((500, 3)), np.zeros(3, np.float32)
    values[0] = 1e-9
    moved = graph_convolution.bias_between_values(values, bias)
    assert np.abs(values + moved).min() > 1e-3
    assert np.abs(moved).max() < graph_convolution.NEAR_ZERO


def test_the_sheets_show_ratios_and_whether_goals_are_met():
    times = [
        ModelTime("gcn", "cora", None, "training", 2, {"gossamer_torch": 1.0, "pyg": 2.0}),
        ModelTime("pruned", "bert_80", None, "training", 2, {"gossamer_torch": 2.0, "torch": 1.0}),
        ModelTime("rgcn", "kg", "small", "training", 2, {"pyg": 1.0}),
    ]
    gcn, gcn_mean, pruned, pruned_mean = models_sheet(times).rows
    assert gcn[3:7] == ("pyg", "2", "1", "2.00")
    assert gcn_mean[-1].endswith("met")
    assert pruned[6] == "0.50"
    assert pruned_mean[-1].endswith("MISSED")
    assert model_times_sheet(times).rows[2][1] == "kg small"
