"""The model that chooses how products with N:M matrices are computed on GPUs."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import gossamer as gs
from gossamer.operator_calls.grid_product_forms import (
    SPARSE_TILE,
    ProductSizes,
    block_size,
    choose_grid_form,
    dense_work,
    sparse_work,
)
from gossamer.operator_calls.n_m_product_forms import FormChoice
from gossamer_cuda_mma_sp.intrinsics.n_m_intrinsics import TILE
from gossamer_ir.errors import FormatError
from gossamer_machine import Grid, Machine

DTYPES = ("float16", "bfloat16", "int8", "uint8", "tfloat32")
GPU = Machine(
    grid=Grid(warp=32, block_threads=1024, shared_memory=49152, multiprocessors=108),
    block_products=tuple((name, "dense") for name in DTYPES),
    n_m_products=tuple((name, "sparse") for name in DTYPES),
)
TARGET = "cuda-mma-sp:driver=interpreter"
MODULE = importlib.import_module("gossamer.operators.matmul_24")


def choice(rows, columns, features, dtype="float16", *, is_tensor=True):
    sizes = ProductSizes(rows, columns, features)
    return choose_grid_form(dtype, sizes, is_tensor=is_tensor, machine=GPU)


@pytest.mark.parametrize(
    ("sizes", "form"),
    [
        ((4096, 4096, 4096), "blocks"),
        ((8192, 8192, 8192), "blocks"),
        ((8192, 8192, 1024), "blocks"),
        # Few features: each element of the matrix is loaded once, and half of them are there.
        ((4096, 4096, 16), "kernel"),
        # Few tiles of 64 by 64 leave multiprocessors idle.
        ((256, 4096, 256), "kernel"),
    ],
)
def test_large_products_are_dense_and_narrow_ones_sparse(sizes, form):
    assert choice(*sizes).form == form
    assert choice(*sizes).why.startswith("the slowest of memory, cache and operations decides")


@pytest.mark.parametrize(
    ("sizes", "dtype", "reason"),
    [
        (
            (4096, 4096, 4095),
            "float16",
            "no blocks divide 4096 rows, 4096 columns and 4095 features",
        ),
        ((4104, 4096, 4096), "float16", "no blocks divide"),
        ((4096, 4104, 4096), "float16", "no blocks divide"),
        ((4096, 4096, 4096), "tfloat32", "no program multiplies blocks of tfloat32"),
        ((4096, 4096, 4096), "uint8", "no program multiplies blocks of uint8"),
        ((4096, 4096, 4096), "int4", "no program multiplies blocks of int4"),
    ],
)
def test_what_has_no_dense_blocks_has_the_kernel(sizes, dtype, reason):
    chosen = choice(*sizes, dtype)
    assert chosen.form == "kernel"
    assert chosen.why.startswith(reason)
    assert choice(4096, 4096, 4096, is_tensor=False).form == "kernel"
    assert choose_grid_form("int8", None, is_tensor=True, machine=GPU).form == "kernel"


def test_a_machine_without_sparse_tensor_cores_has_dense_ones():
    machine = Machine(grid=GPU.grid, block_products=GPU.block_products)
    sizes = ProductSizes(64, 64, 16)
    chosen = choose_grid_form("int8", sizes, is_tensor=True, machine=machine)
    assert (chosen.form, chosen.why) == (
        "blocks",
        "the machine has no sparse tensor cores for int8",
    )


def test_bytes_and_instructions_are_those_of_the_tiles():
    sizes = ProductSizes(64, 128, 64)
    # Two by two tiles. A row has 64 slots of 2 bytes and an index; 4 by 2 instructions for 32 columns.
    sparse = sparse_work("float16", sizes)
    assert sparse.cache == 4 * (32 * 64 * 3 + 128 * 32 * 2)
    assert (sparse.instructions, sparse.tiles) == (4 * 8 * 4, 4)
    assert sparse.memory == 64 * 64 * 3 + 128 * 64 * 2 + 64 * 64 * 4
    dense = dense_work("float16", sizes, block_size("float16", sizes))
    assert dense.cache == (64 + 64) * 128 * 2
    assert (dense.instructions, dense.tiles) == (4 * 8 * 8, 1)
    assert dense.memory == 64 * 128 * 2 + 128 * 64 * 2 + 64 * 64 * 4


def test_the_tile_is_that_of_the_intrinsics():
    assert SPARSE_TILE == TILE


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
