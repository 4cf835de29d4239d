"""Pairs of special values: all of them are there, in whole vectors."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_testkit.corpus.inputs.pairs import (
    PADDED_LENGTH,
    cast_values,
    pairs,
    special_values,
    truths,
)

DTYPES = ["int8", "uint8", "int32", "uint64", "float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_pair_of_special_values_occurs(dtype):
    cases = {
        case.name: case.values for case in pairs({"dtype": dtype, "rows": "ab", "output": dtype})
    }
    everything = cases["all pairs"]
    rows = zip(everything["x"], everything["z"], strict=True)
    met = {(x.tobytes(), z.tobytes()) for x, z in rows}
    special = {value.tobytes() for value in special_values(dtype)}
    assert met == {(x, z) for x in special for z in special}
    assert everything["out"].shape == (2, everything["n"])


@pytest.mark.parametrize("dtype", DTYPES)
def test_cases_are_whole_vectors(dtype):
    for case in pairs({"dtype": dtype, "rows": "a", "output": dtype}):
        assert case.values["n"] % PADDED_LENGTH == 0
        assert case.values["x"].size == case.values["n"]


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64"])
def test_limits_of_integers_are_special(dtype):
    limits = np.iinfo(dtype)
    assert {limits.min, limits.max, 0, 1} <= {*special_values(dtype).tolist()}


def test_all_pairs_of_bools_occur():
    case, empty = truths({"rows": "a"})
    met = {*zip(case.values["x"].tolist(), case.values["z"].tolist(), strict=True)}
    assert met == {(False, False), (False, True), (True, False), (True, True)}
    assert empty.values["n"] == 0


@pytest.mark.parametrize("source", ["float32", "float64", "bfloat16"])
def test_floats_that_become_integers_fit_them(source):
    targets = ["uint8", "int64"]
    case, _ = cast_values({"source": source, "targets": targets})
    x = case.values["x"]
    if source == "bfloat16":
        x = (x.astype(np.uint32) << 16).view(np.float32)
    assert np.isfinite(x).all()
    assert (np.trunc(x) >= 0).all()
    assert (np.trunc(x) <= 255).all()
    assert {name for name in case.values if name.startswith("y_")} == {"y_uint8", "y_int64"}


def test_signed_targets_take_negative_floats():
    case, _ = cast_values({"source": "float64", "targets": ["int32", "bool"]})
    assert case.values["x"].min() < -1
