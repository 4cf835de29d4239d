"""The model that chooses how products with N:M matrices are computed on GPUs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gossamer_heuristics.n_m_tiles import ProductSizes, sparse_work
from gossamer_machine import Grid, Machine, ProductTile
from gossamer_tune.internal_api import block_size, choose_grid_form
from gossamer_tune.n_m_products.grid_form import dense_work

DTYPES = ("float16", "bfloat16", "int8", "uint8", "tfloat32")
GPU = Machine(
    grid=Grid(warp=32, block_threads=1024, shared_memory=49152, multiprocessors=108),
    block_products=tuple((name, "dense") for name in DTYPES),
    n_m_products=tuple((name, "sparse") for name in DTYPES),
    n_m_tiles=(("sparse", ProductTile(32, 32)),),
)
WARPGROUPS = replace(GPU, n_m_tiles=(("sparse", ProductTile(128, 128, is_of_warpgroups=True)),))
STAGED = replace(
    GPU,
    n_m_products=(*GPU.n_m_products, ("float16", "staged")),
    n_m_tiles=(*GPU.n_m_tiles, ("staged", ProductTile(128, 128, warp_part=(64, 32)))),
)
BLOCK_DTYPES = ("float16", "bfloat16", "int8")


def choose(dtype, sizes, *, is_tensor=True, machine=GPU):
    return choose_grid_form(
        dtype, sizes, is_tensor=is_tensor, machine=machine, block_dtypes=BLOCK_DTYPES
    )


def choice(rows, columns, features, dtype="float16", *, is_tensor=True):
    sizes = ProductSizes(rows, columns, features)
    return choose(dtype, sizes, is_tensor=is_tensor)


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
    assert choice(*sizes).why.startswith("the slowest of memory, cache, shared memory and ")


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
def test_a_product_without_dense_blocks_uses_the_kernel(sizes, dtype, reason):
    chosen = choice(*sizes, dtype)
    assert chosen.form == "kernel"
    assert chosen.why.startswith(reason)
    assert choice(4096, 4096, 4096, is_tensor=False).form == "kernel"
    assert choose("int8", None).form == "kernel"


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_large_products_are_sparse_in_tiles_of_warpgroups(dtype):
    for sizes in (ProductSizes(4096, 4096, 4096), ProductSizes(8192, 8192, 1024)):
        assert choose(dtype, sizes).form == "blocks"
        chosen = choose(dtype, sizes, machine=WARPGROUPS)
        assert chosen.form == "kernel"
        assert "the kernel for N:M in tiles of 128 by 128 memory" in chosen.why


@pytest.mark.parametrize(
    ("sizes", "form", "tile"),
    [
        ((4096, 4096, 4096), "kernel", 128),
        ((8192, 8192, 1024), "kernel", 128),
        ((1024, 1024, 1024), "kernel", 128),
        # A column of tiles leaves multiprocessors idle.
        ((4096, 4096, 128), "blocks", 32),
        ((4096, 4096, 16), "kernel", 32),
        ((256, 4096, 256), "kernel", 32),
        # Half of each tile of 128 rows would be empty.
        ((64, 4096, 4096), "kernel", 32),
    ],
)
def test_staged_tiles_are_the_fastest_sparse_ones_where_there_are_enough(sizes, form, tile):
    """They load fewer bytes than dense blocks, and their warps load few to assemble metadata."""
    chosen = choose("float16", ProductSizes(*sizes), machine=STAGED)
    assert chosen.form == form
    assert f"the kernel for N:M in tiles of {tile} by {tile} memory" in chosen.why
    single = choose("bfloat16", ProductSizes(4096, 4096, 4096), machine=STAGED)
    assert "in tiles of 32 by 32" in single.why


def test_tiles_of_warpgroups_have_their_rows_and_features():
    sizes = ProductSizes(200, 128, 130)
    sparse = sparse_work("float16", sizes, ProductTile(128, 128, is_of_warpgroups=True))
    # Two by two tiles of 8 by 16 instructions for 32 columns, which take a cycle each.
    assert (sparse.instructions, sparse.tiles) == (4 * 8 * 16 * 4, 4)
    assert sparse.cache == 4 * (128 * 64 * 3 + 128 * 128 * 2)
    assert sparse.cycles(GPU.grid)["operations"] == sparse.instructions // 4


def test_a_machine_without_sparse_tensor_cores_has_dense_ones():
    machine = Machine(grid=GPU.grid, block_products=GPU.block_products)
    sizes = ProductSizes(64, 64, 16)
    chosen = choose("int8", sizes, machine=machine)
    assert (chosen.form, chosen.why) == (
        "blocks",
        "the machine has no sparse tensor cores for int8",
    )


def test_bytes_and_instructions_are_those_of_the_tiles():
    sizes = ProductSizes(64, 128, 64)
    # Two by two tiles. A row has 64 slots of 2 bytes and an index; 4 by 2 instructions for 32 columns.
    sparse = sparse_work("float16", sizes, ProductTile(32, 32))
    assert sparse.cache == 4 * (32 * 64 * 3 + 128 * 32 * 2)
    assert (sparse.instructions, sparse.tiles) == (4 * 8 * 4, 4)
    assert sparse.memory == 64 * 64 * 3 + 128 * 64 * 2 + 64 * 64 * 4
    dense = dense_work("float16", sizes, block_size("float16", sizes))
    assert dense.cache == (64 + 64) * 128 * 2
    assert (dense.instructions, dense.tiles) == (4 * 8 * 8, 1)
    assert dense.memory == 64 * 128 * 2 + 128 * 64 * 2 + 64 * 64 * 4
