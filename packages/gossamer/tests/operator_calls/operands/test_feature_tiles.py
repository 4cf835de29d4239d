"""Products of wide dense matrices in tiles of their features."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.operator_calls.operands import feature_tiles as tiles_module
from gossamer.operator_calls.operands.feature_tiles import dense_feature_tiles
from gossamer.operators.sddmm import checked_operands
from gossamer_ir.errors import ArgumentError

ROWS, COLUMNS = 50, 40


@pytest.fixture(autouse=True)
def small_cache(monkeypatch):
    """A cache whose usable part holds 128 features of float32 of all columns."""
    machine = SimpleNamespace(private_cache=COLUMNS * 512 * 4 // 3 + 1, grid=None)
    monkeypatch.setattr(tiles_module, "machine_for", lambda _target: machine)
    gs.sddmm.forget()


def matrix(density=1.0):
    stored = np.random.default_rng(0).random((ROWS, COLUMNS)) < density
    return sparse.csr_array(stored.astype(np.float32))


def wide(features, dtype=np.float32):
    rng = np.random.default_rng(1)
    return tuple(rng.integers(-3, 4, (size, features)).astype(dtype) for size in (ROWS, COLUMNS))


def plan_features():
    return {sizes for _, _, sizes in gs.sddmm._plans.by_key}


@pytest.mark.parametrize(
    ("features", "density", "dtype", "widths"),
    [
        (128, 1.0, np.float32, [128]),
        (129, 1.0, np.float32, [128, 1]),
        (300, 1.0, np.float32, [128, 128, 44]),
        (300, 1.0, np.float64, [64] * 4 + [44]),
        (300, 0.3, np.float32, [300]),
        (0, 1.0, np.float32, [0]),
    ],
)
def test_widths_of_tiles(features, density, dtype, widths):
    A = matrix(density).astype(dtype)
    tiles = dense_feature_tiles(checked_operands(A, *wide(features, dtype)))
    assert [tile.stop - tile.start for tile in tiles] == widths
    assert tiles[-1].stop == features


def test_a_matrix_with_too_many_columns_has_no_tiles(monkeypatch):
    monkeypatch.setattr(tiles_module, "MIN_BYTES", 1024)
    assert len(dense_feature_tiles(checked_operands(matrix(), *wide(600)))) == 1


def test_grids_of_threads_have_no_tiles(monkeypatch):
    cpu = tiles_module.machine_for("")
    grid = SimpleNamespace(private_cache=cpu.private_cache, grid="any")
    monkeypatch.setattr(tiles_module, "machine_for", {"cpu": cpu, "gpu": grid}.get)
    tiles = [
        dense_feature_tiles(checked_operands(matrix(), *wide(300)), target=name)
        for name in ("cpu", "gpu")
    ]
    assert list(map(len, tiles)) == [3, 1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
def test_products_in_tiles_are_those_of_all_features(dtype):
    A, (X, Y) = matrix(), wide(600, dtype)
    wide_dtype = np.int32 if dtype == np.int8 else dtype
    rows, columns = A.nonzero()
    expected = (X.astype(wide_dtype) @ Y.astype(wide_dtype).T)[rows, columns]
    for operand in (A.astype(dtype), gs.from_scipy(A.astype(dtype))):
        for _ in range(2):
            assert np.array_equal(gs.sddmm(operand, X, Y), expected)
            out = np.full(A.nnz, 7, wide_dtype)
            assert gs.sddmm(operand, X, Y, out=out) is out
            assert np.array_equal(out, expected)
    assert (600,) not in plan_features()


def test_sums_of_tiles_may_be_nan_or_infinite():
    X, Y = np.ones((ROWS, 300), np.float32), np.ones((COLUMNS, 300), np.float32)
    X[0, 1], X[0, 200] = np.inf, -np.inf
    X[1, [1, 200]] = np.finfo(np.float32).max
    result = gs.sddmm(matrix(), X, Y).reshape(ROWS, COLUMNS)
    assert np.isnan(result[0]).all()
    assert np.isinf(result[1]).all()
    assert (result[2:] == 300).all()


def test_narrow_matrices_have_plans():
    gs.sddmm(matrix(), *wide(128))
    assert plan_features() == {(128,)}


def test_errors_are_those_of_other_calls():
    A, (X, Y) = matrix(), wide(300)
    for wrong in ((X, Y[:, :200]), (X[1:], Y), (X, Y.astype(np.float64))):
        with pytest.raises(ArgumentError):
            gs.sddmm(A, *wrong)
    with pytest.raises(ArgumentError) as caught:
        gs.sddmm(A, X, Y, out=np.empty(3, np.float32))
    assert caught.value.code == "operand.shape"
