"""Programs that subtract, with the default schedules, against SciPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.operators import sddmm, spmm, spmv
from gossamer_ir.interchange.records import Stats

ROWS = Stats(rows=7, columns=40, nnz=7 * 60, longest_row=90, empty_rows=2)


def negated(script):
    old = script.rstrip().splitlines()[-1]
    return script.replace(old, old.replace(" + ", " - "))


def matrix():
    random = np.random.default_rng(2)
    dense = random.integers(-3, 4, (7, 40)) * (random.random((7, 40)) < 0.5)
    dense[0] = dense[-1] = 0
    return sparse.csr_array(dense.astype(np.float32))


def arrays_of(csr):
    return {"indptr": csr.indptr, "indices": csr.indices}


@pytest.mark.parametrize("features", [1, 3, 16, 50, 300])
def test_a_product_is_subtracted(features):
    csr, script = matrix(), negated(spmm.SCRIPT)
    dense = np.random.default_rng(0).integers(-3, 4, (40, features)).astype(np.float32)
    result = np.full((7, features), np.nan, np.float32)
    kernel = gs.compile(script, specialize={"feat_size": features})
    kernel(a=csr.data, b=dense, c=result, **arrays_of(csr))
    np.testing.assert_array_equal(result, -(csr.astype(np.float64) @ dense))
    assert gs.explain(script).rule == "row_spmm"


def test_terms_of_a_row_are_subtracted():
    csr, script = matrix(), negated(spmv.SCRIPT)
    vector = np.arange(40, dtype=np.float32) - 9
    result = np.full(7, np.nan, np.float32)
    gs.compile(script)(a=csr.data, x=vector, y=result, **arrays_of(csr))
    np.testing.assert_array_equal(result, -(csr.astype(np.float64) @ vector))
    chosen = gs.explain(script, stats=ROWS)
    assert chosen.rule == "row_spmv"
    gs.compile(script, schedule=chosen.schedule)


def test_products_of_features_are_subtracted():
    csr, script = matrix(), negated(sddmm.SCRIPT)
    left = np.arange(7 * 20, dtype=np.float32).reshape(7, 20) % 5
    right = np.arange(40 * 20, dtype=np.float32).reshape(40, 20) % 7
    result = np.full(csr.nnz, np.nan, np.float32)
    kernel = gs.compile(script, specialize={"feat_size": 20})
    kernel(x=left, y=right, out=result, **arrays_of(csr))
    rows = np.repeat(np.arange(7), np.diff(csr.indptr))
    np.testing.assert_array_equal(result, -(left @ right.T)[rows, csr.indices])
    assert gs.explain(script).rule == "row_sddmm"
