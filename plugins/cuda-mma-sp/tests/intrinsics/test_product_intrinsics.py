"""The intrinsics of products: where GPUs have them, and what both of their scripts compute."""

from math import prod

import numpy as np
import pytest

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.intrinsics.block_intrinsics import block_intrinsic
from gossamer_cuda_mma_sp.intrinsics.n_m_intrinsics import n_m_intrinsic
from gossamer_cuda_mma_sp.intrinsics.product_intrinsics import (
    PRODUCT_INTRINSICS,
    n_m_tiles_of,
    products_of,
)
from gossamer_cuda_mma_sp.target.architectures import ARCHITECTURES
from gossamer_cuda_mma_sp.target.gpu import gpu_of
from gossamer_heuristics.n_m_tiles import ProductSizes, choose_n_m_tile
from gossamer_ir.core.dtypes import SCALARS
from gossamer_ir.interchange.records import Target
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.walk import stmts
from gossamer_lower import lower_to_flat

ROWS, COLUMNS, FEATURES = 3, 12, 5
SPARSE = ("float16", "bfloat16", "int8", "uint8", "tfloat32")
# NumPy has no values of the others; the integration tests multiply them.
NUMPY_INTRINSICS = [
    each
    for each in PRODUCT_INTRINSICS
    if not each.operands.startswith(("bfloat", "float8"))
    # Tiles of warpgroups are large; those of bytes differ in nothing else, nor do those of other sizes here.
    and not (each.is_of_warpgroup and (each.operands == "uint8" or each.features != 128))
]


@pytest.mark.parametrize(
    ("architecture", "is_sparse", "dtypes"),
    [
        ("sm_75", False, ()),
        ("sm_75", True, ()),
        ("sm_80", False, ("float16", "bfloat16", "int8", "uint8", "tfloat32")),
        ("sm_80", True, ("float16", "bfloat16", "int8", "uint8", "tfloat32", "int4", "uint4")),
        ("sm_89", True, (*SPARSE, "float8_e4m3", "float8_e5m2", "int4", "uint4")),
        ("sm_90", True, SPARSE),
        ("sm_90a", True, (*SPARSE, "float8_e4m3", "float8_e5m2")),
        ("sm_120", True, (*SPARSE, "float8_e4m3", "float8_e5m2")),
    ],
)
def test_a_gpu_has_the_products_of_its_instructions(architecture, is_sparse, dtypes):
    gpu = gpu_of(Target.parse(f"cuda-mma-sp:arch={architecture}"))
    products = products_of(gpu, is_sparse=is_sparse)
    assert tuple(dict.fromkeys(dtype for dtype, _ in products)) == dtypes


def small_integers(shape, dtype):
    return np.random.default_rng(sum(shape)).integers(0, 5, shape).astype(dtype)


def n_m_problem(product):
    """The operands of a product of an N:M matrix, and the matrix as a dense array."""
    pattern = product.pattern
    groups = 3
    shape = [size for size in (pattern.slots, pattern.unit_columns) if size > 1]
    values = small_integers((ROWS, groups, *shape), product.stored_dtype)
    units = [[0, 3], [1, 2], [2, 3]] if pattern.slots > 1 else [0, 1, 1]
    indices = np.tile(np.array(units, np.uint8), (ROWS, *(1,) * (1 + (pattern.slots > 1))))
    dense = np.zeros((ROWS, groups, pattern.units, pattern.unit_columns), np.int64)
    stored = values.reshape(ROWS, groups, pattern.slots, pattern.unit_columns).astype(np.int64)
    at = indices.reshape(ROWS, groups, pattern.slots, 1).astype(np.int64)
    np.put_along_axis(dense, at, stored, axis=-2)
    B = small_integers((groups * pattern.group, FEATURES), product.stored_dtype)
    sizes = {"rows": ROWS, "groups": groups, "features": FEATURES}
    indices = indices.reshape(ROWS, groups, *shape[:1])
    return {"a": values, "e": indices, "b": B, **sizes}, dense.reshape(ROWS, -1) @ B.astype(
        np.int64
    )


def block_problem(product):
    A = small_integers((2, ROWS, COLUMNS), product.stored_dtype)
    B = small_integers((2, COLUMNS, FEATURES), product.stored_dtype)
    sizes = {"blocks": 2, "rows": ROWS, "columns": COLUMNS, "features": FEATURES}
    return {"a": A, "b": B, **sizes}, (A.astype(np.int64) @ B.astype(np.int64)).sum(axis=0)


def test_warpgroups_multiply_where_there_are_any():
    gpu = gpu_of(Target.parse("cuda-mma-sp:arch=sm_90a"))
    products, tiles = products_of(gpu, is_sparse=True), dict(n_m_tiles_of(gpu))
    for dtype in (*SPARSE, "float8_e4m3", "float8_e5m2"):
        names = [name for operands, name in products if operands == dtype]
        assert all(name.startswith(f"wgmma_sp_product_{dtype}") for name in names)
        features = [tiles[name].features for name in names]
        assert features == ([64, 128] if dtype == "tfloat32" else [64, 128, 256])
        assert all(tiles[name].is_of_warpgroups and tiles[name].rows == 128 for name in names)


@pytest.mark.parametrize(
    ("sizes", "features"),
    [
        ((4096, 4096, 4096), 256),
        ((8192, 8192, 1024), 256),
        # Few tiles leave multiprocessors idle, and few features a part of each tile.
        ((1024, 1024, 1024), 64),
        ((2048, 4096, 1024), 128),
        ((4096, 4096, 48), 64),
    ],
)
def test_a_model_chooses_the_tile_of_warpgroups(sizes, features):
    machine = CudaBackend().machine(Target.parse("cuda-mma-sp:arch=sm_90a"))
    for dtype in ("float16", "int8"):
        chosen = choose_n_m_tile(machine, dtype, ProductSizes(*sizes))
        assert chosen.tile.features == features


@pytest.mark.parametrize("architecture", ["sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_120"])
@pytest.mark.parametrize("operands", ["bfloat16", "tfloat32"])
def test_elements_of_16_and_32_bits_have_small_tiles_and_staged_ones(operands, architecture):
    gpu = gpu_of(Target.parse(f"cuda-mma-sp:arch={architecture}"))
    names = [name for dtype, name in products_of(gpu, is_sparse=True) if dtype == operands]
    assert names == [f"mma_sp_product_{operands}", f"mma_sp_staged_product_{operands}"]
    tiles = dict(n_m_tiles_of(gpu))
    assert [(tiles[name].rows, tiles[name].features) for name in names] == [(32, 32), (128, 128)]
    # All warps of a block have parts of the tile.
    rows, features = tiles[names[1]].warp_part
    assert 128 // rows * (128 // features) * 32 == 256


def test_a_block_has_the_shared_memory_of_the_stages():
    for intrinsic in PRODUCT_INTRINSICS:
        if not intrinsic.stages:
            continue
        kernel = lower_to_flat(parse_module(n_m_intrinsic(intrinsic).implementation))
        buffers = allocations(stmts(kernel.functions[0].body))
        stage = sum(
            prod(int(extent.text) for extent in buffer.shape) * SCALARS[buffer.dtype].bits // 8
            for buffer in buffers
            if buffer.scope == "shared"
        )
        for architecture in ARCHITECTURES.values():
            has_instruction = not intrinsic.is_of_warpgroup or architecture.has_warpgroups
            if architecture.number >= 80 and has_instruction:
                assert intrinsic.stages * stage <= architecture.block_memory


@pytest.mark.parametrize("script", ["semantics", "implementation"])
@pytest.mark.parametrize("product", NUMPY_INTRINSICS, ids=lambda each: each.name)
def test_both_scripts_add_the_product_of_numpy(product, script):
    # The interpreter computes whole tiles.
    tile = 32 if product.stages else 16
    made = n_m_intrinsic(product, tile=tile) if product.is_sparse else block_intrinsic(product)
    arguments, expected = (n_m_problem if product.is_sparse else block_problem)(product)
    C = np.ones((ROWS, FEATURES), product.sums)
    run(parse_module(getattr(made, script)), {**arguments, "c": C})
    np.testing.assert_array_equal(C, expected + 1)
