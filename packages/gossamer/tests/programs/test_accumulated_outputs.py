"""Programs without `init`, which accumulate into the given output, with default schedules, against SciPy in
float64: empty rows at both ends, a dense row, no rows, sizes that are not multiples of tiles.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.operators import spmm, spmv
from gossamer_ir.interchange.records import Stats

DTYPES = ("float32", "float64")
SIGNS = {"+": 1, "-": -1}
SHAPES = [(0, 5), (7, 40), (1, 1), (33, 29)]
LONG = Stats(rows=7, columns=40, nnz=7 * 60, longest_row=90, empty_rows=2)


def going_on(script, sign):
    """The script without its init, and with another sign before the accumulated terms."""
    text = re.sub(r"        with T\.init\(\):\n.*\n", "", script)
    old = text.rstrip().splitlines()[-1]
    return text.replace(old, old.replace(" + ", f" {sign} "))


def matrix(shape, dtype):
    random = np.random.default_rng(2)
    dense = random.integers(-3, 4, shape) * (random.random(shape) < 0.3)
    if shape[0] > 2:
        dense[0] = dense[-1] = 0
        dense[shape[0] // 2] = 1
    return sparse.csr_array(dense.astype(dtype))


def small(*shape, dtype):
    return np.random.default_rng(len(shape)).integers(-4, 5, shape).astype(dtype)


def arrays_of(csr):
    return {"a": csr.data, "indptr": csr.indptr, "indices": csr.indices}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("features", [1, 3, 16, 33, 100, 300, 1100, None])
def test_a_product_is_added_to_what_is_there(features, sign, dtype):
    script = going_on(spmm.SCRIPT, sign)
    sizes = {} if features is None else {"feat_size": features}
    kernel = gs.compile(script, specialize=sizes, dtypes=dict.fromkeys("ABC", dtype))
    assert gs.explain(script, specialize=sizes).rule == "row_spmm"
    for shape in SHAPES:
        csr = matrix(shape, dtype)
        dense = small(shape[1], features or 21, dtype=dtype)
        result = small(shape[0], dense.shape[1], dtype=dtype)
        expected = result + SIGNS[sign] * (csr.astype(np.float64) @ dense)
        kernel(b=dense, c=result, **arrays_of(csr))
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("stats", [None, LONG], ids=["unknown", "long rows"])
def test_terms_of_a_row_are_added_to_what_is_there(stats, sign, dtype):
    script = going_on(spmv.SCRIPT, sign)
    chosen = gs.explain(script, stats=stats)
    assert chosen.rule == "row_spmv"
    kernel = gs.compile(script, schedule=chosen.schedule, dtypes=dict.fromkeys("AXY", dtype))
    for shape in SHAPES:
        csr, vector = matrix(shape, dtype), small(shape[1], dtype=dtype)
        result = small(shape[0], dtype=dtype)
        expected = result + SIGNS[sign] * (csr.astype(np.float64) @ vector)
        kernel(x=vector, y=result, **arrays_of(csr))
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("op", ["max", "min"])
def test_extrema_of_rows_go_on_from_what_is_there(op):
    script = going_on(spmv.SCRIPT, "+")
    old = script.rstrip().splitlines()[-1]
    script = script.replace(old, f"        Y[i] = T.{op}(Y[i], A[i, j] * X[j])")
    csr, vector = matrix((33, 29), "float32"), small(29, dtype="float32")
    result = small(33, dtype="float32")
    combine = getattr(np, f"{op}imum")
    expected = result.copy()
    rows = np.repeat(np.arange(33), np.diff(csr.indptr))
    combine.at(expected, rows, csr.data * vector[csr.indices])
    gs.compile(script)(x=vector, y=result, **arrays_of(csr))
    np.testing.assert_array_equal(result, expected)
    assert gs.explain(script).rule == "row_spmv"


def test_an_output_that_need_not_have_all_rows_is_left_to_its_program():
    script = going_on(spmv.SCRIPT, "+").replace(
        "    Y = T.sp.match_buffer(y, (I,)",
        "    N = T.sp.dense_fixed(rows)\n    Y = T.sp.match_buffer(y, (N,)",
    )
    script = script.replace("    m: T.int64,", "    m: T.int64,\n    rows: T.int64,")
    assert gs.explain(script).rule is None
    csr, vector = matrix((33, 29), "float32"), small(29, dtype="float32")
    result = small(32, dtype="float32")  # the last row is empty
    expected = result + (csr @ vector)[:32]
    gs.compile(script)(x=vector, y=result, **arrays_of(csr))
    np.testing.assert_array_equal(result, expected)
