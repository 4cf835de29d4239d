"""Products with N:M matrices on GPUs, by sparse tensor cores and in dense blocks."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import gossamer as gs
from gossamer_ir.errors import FormatError
from gossamer_tune.internal_api import FormChoice

TARGET = "cuda-mma-sp:driver=interpreter"
MODULE = importlib.import_module("gossamer.operators.n_m_products.forms")


@pytest.mark.parametrize(
    ("architecture", "dtype", "what"),
    [
        ("sm_80", "float16", "the kernel for N:M"),
        ("sm_120", "bfloat16", "the kernel for N:M"),
        ("sm_90", "int8", "the product of dense blocks (spmm in BSR)"),
        ("sm_90a", "float16", "the kernel for N:M"),
    ],
)
def test_large_products_are_sparse_where_tiles_are_staged(architecture, dtype, what):
    sizes = {"m": 4096, "groups": 1024, "feat_size": 4096}
    dtypes = {"A": dtype, "B": dtype}
    target = f"cuda-mma-sp:arch={architecture}"
    report = gs.explain("matmul_24", target=target, dtypes=dtypes, specialize=sizes)
    assert report.decisions[0].what == what
    tile = "32 by 32" if dtype == "int8" else "128 by 128"
    if architecture == "sm_90a":
        tile = "128 by 256"
    assert f"the kernel for N:M in tiles of {tile} memory" in report.decisions[0].why


def pruned(rows, columns, dtype):
    dense = np.random.default_rng(0).integers(-4, 5, (rows, columns))
    return gs.prune(dense.astype(np.float64), "2:4").astype(dtype)


@pytest.fixture
def chooses_blocks(monkeypatch):
    """Products in blocks; those that the interpreter of PTX computes in a moment are sparse by the model."""
    chosen = FormChoice("blocks", "it is tested")
    monkeypatch.setattr(MODULE, "choose_grid_form", lambda *_, **__: chosen)


@pytest.mark.usefixtures("chooses_blocks")
@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_both_forms_have_the_same_product(dtype):
    A = pruned(64, 64, dtype)
    B = np.random.default_rng(1).integers(-4, 5, (64, 16)).astype(dtype)
    out = np.empty((64, 16), "int32" if dtype == "int8" else "float32")
    for _ in range(2):
        assert gs.matmul_24(A, B, out=out, target=TARGET) is out
        np.testing.assert_array_equal(out, A.toarray().astype(int) @ B)
    # The matrix as 2:4, which is checked, and in blocks.
    assert len(A.memo) == 2


@pytest.mark.usefixtures("chooses_blocks")
def test_a_tensor_without_the_pattern_is_refused_in_blocks_too():
    full = gs.prune(np.ones((64, 64)), "n_m", slots=4, group=4).astype("int8")
    with pytest.raises(FormatError, match="Row 0 has 4 nonzeros in the columns 0 to 3"):
        gs.matmul_24(full, np.ones((64, 64), np.int8), target=TARGET)


def test_explain_says_which_form_and_why():
    sizes = {"m": 4096, "groups": 1024, "feat_size": 4096}
    dtypes = {"A": "int8", "B": "int8"}
    decision = gs.explain("matmul_24", target=TARGET, dtypes=dtypes, specialize=sizes).decisions[0]
    assert decision.what == "the product of dense blocks (spmm in BSR)"
    assert "dense blocks memory" in decision.why
    unknown = gs.explain("matmul_24", target=TARGET, dtypes=dtypes).decisions[0]
    assert unknown.what == "the kernel for N:M"
