"""Reductions over segments on a GPU, in the interpreter of PTX, against NumPy: the default schedules of sums,
maxima and means over ragged rows, with and without features."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import gossamer as gs
from gossamer_ir.interchange.records import Stats
from gossamer_ir.script import parse_module
from tests.integration.gpu_programs import ARCHITECTURES, INTERPRETED, ptx_of, require_assembled

SUM = """
    with T.sp.iteration([I, J{K}], "SR{S}", "sums") as [i, j{k}]:
        with T.init():
            Y[i{k}] = 0.0
        Y[i{k}] = Y[i{k}] + X[i, j{k}]
"""
MAX = """
    with T.sp.iteration([I, J{K}], "SR{S}", "most") as [i, j{k}]:
        with T.init():
            Y[i{k}] = T.float32("-inf")
        Y[i{k}] = T.max(Y[i{k}], X[i, j{k}])
"""
MEAN = (
    SUM
    + """
    with T.sp.iteration([I, J], "SR", "lengths") as [i, j]:
        with T.init():
            Length[i] = 0.0
        Length[i] = Length[i] + 1.0
    with T.sp.iteration([I{K}], "S{S}", "means") as [i{k}]:
        Y[i{k}] = Y[i{k}] / T.max(Length[i], 1.0)
"""
)
REDUCTIONS = {
    "sum": (SUM, lambda rows: rows.sum(axis=0)),
    "max": (MAX, lambda rows: rows.max(axis=0, initial=-np.inf)),
    "mean": (MEAN, lambda rows: rows.sum(axis=0) / max(len(rows), 1)),
}
LENGTHS = {
    "ragged": (0, 3, 1, 0, 17, 4, 40, 0),
    "one long row": (100,),
    "empty rows": (0, 0, 0),
    "no rows": (),
}


def program(body, *, has_features):
    names = {"K": ", K", "S": "S", "k": ", k"} if has_features else {"K": "", "S": "", "k": ""}
    length = '    Length = T.sp.alloc_buffer((I,), "float32")\n' if "Length" in body else ""
    result = "(I, K)" if has_features else "(I,)"
    return parse_module(f"""
@T.prim_func
def segments(x: T.handle, y: T.handle, indptr: T.handle, m: T.int64, longest: T.int64,
             nnz: T.int64, features: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 2}})
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_varied(I, (longest, nnz), indptr, "int32")
    K = T.sp.dense_fixed(features)
    X = T.sp.match_buffer(x, (I, J{names["K"]}), "float32")
    Y = T.sp.match_buffer(y, {result}, "float32")
{length}{body.format(**names)}""")


@pytest.mark.parametrize("features", [None, 1, 5, 40])
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_segments_are_reduced(name, lengths, features):
    body, oracle = REDUCTIONS[name]
    indptr = np.cumsum((0, *LENGTHS[lengths])).astype(np.int32)
    shape = (int(indptr[-1]),) if features is None else (int(indptr[-1]), features)
    X = np.random.default_rng(3).integers(-9, 9, shape).astype(np.float32)
    Y = np.full((len(LENGTHS[lengths]), *shape[1:]), np.nan, np.float32)
    kernel = gs.compile(program(body, has_features=features is not None), target=INTERPRETED)
    sizes = {"m": len(Y), "longest": max(LENGTHS[lengths], default=0), "nnz": len(X)}
    sizes = {key: size for key, size in sizes.items() if key in kernel.signature.order}
    if "features" in kernel.signature.order:
        sizes["features"] = features or 1
    kernel(x=X, y=Y, indptr=indptr, **sizes)
    rows = [oracle(X[begin:end]) for begin, end in pairwise(indptr)]
    expected = np.array(rows, np.float32).reshape(Y.shape)
    np.testing.assert_allclose(Y, expected, rtol=0 if name != "mean" else 1e-6)


@pytest.mark.parametrize("has_features", [False, True])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_each_reduction_runs_on_threads(name, has_features):
    module = program(REDUCTIONS[name][0], has_features=has_features)
    text = ptx_of(module)
    assert "statements" not in text
    assert text.count(".entry") == (3 if name == "mean" else 1)


def test_threads_of_a_warp_share_long_segments():
    stats = Stats(rows=10, columns=1000, nnz=1000, longest_row=200, empty_rows=0)
    for name in ("sum", "max"):
        report = gs.explain(
            program(REDUCTIONS[name][0], has_features=False), target=INTERPRETED, stats=stats
        )
        assert report.decisions[-1].what == "32 threads for each row add up what they have"


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_ptxas_assembles_reductions(name, architecture, tmp_path):
    require_assembled(program(REDUCTIONS[name][0], has_features=True), architecture, tmp_path)
