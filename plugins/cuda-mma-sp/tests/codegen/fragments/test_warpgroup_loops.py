"""Tiles that warpgroups multiply, with B in shared memory: PTX, results, and what is refused."""

import re

import numpy as np
import pytest
from warpgroup_programs import compiled, ptx_of, warpgroup_text

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.instructions.warpgroup_instructions import WARPGROUP_INSTRUCTIONS
from gossamer_cuda_mma_sp.intrinsics.n_m_intrinsics import n_m_intrinsic
from gossamer_cuda_mma_sp.intrinsics.product_intrinsics import ProductIntrinsic
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interchange.records import Target
from gossamer_ir.script import parse_module
from gossamer_lower import lower_to_flat

COLUMNS = {
    dtype: {instruction.columns for instruction in WARPGROUP_INSTRUCTIONS if instruction.a == dtype}
    for dtype in ("float16", "int8", "uint8")
}
"""The columns that instructions have."""


@pytest.mark.parametrize(
    ("dtype", "sums", "options"),
    [
        ("float16", "float32", {"columns": 64}),
        ("float16", "float16", {"rows": 128, "columns": 8, "depth": 32}),
        ("float16", "float32", {"columns": 24, "by_k": True}),
        # Rows of B of several spans, of 16 (72), 32 (80) and 64 bytes (96), too.
        *(("float16", "float32", {"columns": columns}) for columns in (72, 80, 96, 128, 192, 256)),
        ("float16", "float32", {"columns": 256, "by_k": True, "depth": 192}),
        ("float16", "float32", {"rows": 128, "columns": 128, "depth": 128, "threads": 256}),
        ("float16", "float16", {"rows": 64, "columns": 512}),
        # A is in shared memory, too.
        ("float16", "float32", {"columns": 64, "a_is_shared": True}),
        ("float16", "float16", {"rows": 256, "depth": 256, "threads": 256, "a_is_shared": True}),
        ("int8", "int32", {"by_k": True, "depth": 192, "a_is_shared": True}),
        # No instruction has 40 columns of integers.
        ("int8", "int32", {"columns": 40, "by_k": True}),
        ("int8", "int32", {"columns": 256, "by_k": True, "depth": 256}),
        ("uint8", "int32", {"rows": 256, "columns": 128, "by_k": True, "threads": 256}),
        ("int8", "int32", {"rows": 128, "columns": 16, "depth": 128, "by_k": True}),
    ],
)
def test_a_warpgroup_multiplies_a_tile(dtype, sums, options):
    rng = np.random.default_rng(0)
    sizes = {"rows": 64, "columns": 16, "depth": 64, "by_k": False, "threads": 128} | options
    rows, columns, depth = sizes["rows"], sizes["columns"], sizes["depth"]
    least = 0 if dtype == "uint8" else -4
    A = rng.integers(least, 5, (rows, depth // 4, 2))
    E = np.sort(rng.random((rows, depth // 4, 4)).argsort(axis=2)[..., :2], axis=2)
    dense = np.zeros((rows, depth // 4, 4), np.int64)
    np.put_along_axis(dense, E, A, axis=2)
    B, C = rng.integers(least, 5, (depth, columns)), rng.integers(-9, 9, (rows, columns))
    stored = np.ascontiguousarray((B.T if sizes["by_k"] else B).astype(dtype))
    arguments = {"a": A.astype(dtype), "e": E.astype(np.uint8), "b": stored, "c": C.astype(sums)}
    artifact = compiled(warpgroup_text(dtype, sums, **options))
    text = ptx_of(artifact)
    steps = depth * np.dtype(dtype).itemsize // 64
    at_once = next(
        count for count in range(columns, 0, -8) if columns % count == 0 and count in COLUMNS[dtype]
    )
    tiles = 128 * rows // 64 // sizes["threads"] * (columns // at_once)
    assert text.count(f"wgmma.mma_async.sp.sync.aligned.m64n{at_once}k") == tiles * steps
    assert text.count("wgmma.mma_async") == tiles * steps
    assert text.count("wgmma.wait_group") == 1
    # Four registers of A are a list; a descriptor is not.
    assert (re.search(r"mma_async[^{]*\{[^}]*\}, \{", text) is None) == ("a_is_shared" in options)
    assert text.index("fence.proxy.async") < text.index("bar") < text.index("wgmma.fence")
    CudaBackend().load(artifact)(**arguments)
    np.testing.assert_array_equal(arguments["c"], dense.reshape(rows, depth) @ B + C)


HALF = warpgroup_text("float16", "float32")


def test_threads_wait_for_a_store_to_any_element_of_the_tile():
    before, mark, after = HALF.partition("        for i, j in T.grid(64, 16):")
    artifact = compiled(f"{before}        Y[5, 3] = T.float16(1)\n{mark}{after}")
    B, C = np.zeros((64, 16), np.float16), np.zeros((64, 16), np.float32)
    A, E = np.ones((64, 16, 2), np.float16), np.tile(np.array([1, 2], np.uint8), (64, 16, 1))
    CudaBackend().load(artifact)(a=A, e=E, b=B, c=C)
    assert (C[:, 3] == 1).all()
    assert C.sum() == 64


def test_constant_sums_and_factors_are_not_in_the_same_registers():
    """The first product would change the zeros that the second one multiplies."""
    constant = HALF.replace("S[i, j] = C[i, j]", "S[i, j] = T.float32(0)").replace(
        "X[i_1, q_1, s_1] = A[i_1, q_1, s_1]",
        "X[i_1, q_1, s_1] = T.if_then_else(q_1 < 8, A[i_1, q_1, s_1], T.float16(0))",
    )
    A, E = np.ones((64, 16, 2), np.float16), np.tile(np.array([1, 2], np.uint8), (64, 16, 1))
    B, C = np.ones((64, 16), np.float16), np.zeros((64, 16), np.float32)
    CudaBackend().load(compiled(constant))(a=A, e=E, b=B, c=C)
    assert (C == 16).all()


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (HALF, "cuda-mma-sp:arch=sm_90"),
        (HALF, "cuda-mma-sp:arch=sm_100a"),
        (HALF, "cuda-mma-sp:arch=sm_90a,ptx=8.0"),
        (warpgroup_text("float16", "float32", columns=12), "cuda-mma-sp:arch=sm_90a"),
        (warpgroup_text("float16", "float32", rows=32), "cuda-mma-sp:arch=sm_90a"),
        (warpgroup_text("int8", "int32"), "cuda-mma-sp:arch=sm_90a"),
    ],
)
def test_a_product_without_an_instruction_is_refused(text, target):
    with pytest.raises(UnsupportedError, match="no matrix instruction of four warps") as caught:
        compiled(text, target)
    assert caught.value.code == "cuda.fragment.instruction"


TF32 = n_m_intrinsic(
    ProductIntrinsic("tfloat32", 16, is_sparse=True, is_of_warpgroup=True), tile=32
).implementation


@pytest.mark.parametrize("name", ["A", "B"])
def test_operands_that_are_not_rounded_when_they_are_stored_are_refused(name):
    """The instruction cuts the last bits off."""
    module = lower_to_flat(parse_module(TF32))
    target = Target.parse("cuda-mma-sp:arch=sm_90a")
    assert "m64n32k16.f32.tf32.tf32" in CudaBackend().texts(module, target)["ptx"]
    unrounded = re.sub(rf"T\.tf32\(({name}\[[^]]*\])\)", r"\1", TF32)
    assert unrounded != TF32
    with pytest.raises(UnsupportedError, match="no matrix instruction of four warps") as caught:
        CudaBackend().texts(lower_to_flat(parse_module(unrounded)), target)
    assert caught.value.code == "cuda.fragment.instruction"


def test_threads_that_cannot_hold_a_tile_are_refused():
    with pytest.raises(UnsupportedError, match="a warpgroup of 128 threads has 64 rows") as caught:
        compiled(warpgroup_text("float16", "float32", rows=64, threads=256))
    assert caught.value.code == "cuda.fragment.threads"


def test_a_dense_product_with_a_factor_in_shared_memory_is_refused():
    dense = HALF.replace('(64, 16, 2), "float16", scope', '(64, 64), "float16", scope')
    dense = dense.replace(
        "for i_1, q_1, s_1 in T.grid(64, 16, 2):", "for i_1, q_1 in T.grid(64, 64):"
    )
    dense = dense.replace(
        "X[i_1, q_1, s_1] = A[i_1, q_1, s_1]", "X[i_1, q_1] = A[i_1, q_1 // 4, 0]"
    )
    dense = dense.replace(
        "for i_3, q_3, s_3, j_2 in T.grid(64, 16, 2, 16):", "for i_3, j_2, k in T.grid(64, 16, 64):"
    )
    dense = dense.replace(
        "X[i_3, q_3, s_3]) * T.float32(Y[4 * q_3 + T.int64(M[i_3, q_3, s_3]) % 4, j_2]",
        "X[i_3, k]) * T.float32(Y[k, j_2]",
    )
    with pytest.raises(UnsupportedError) as caught:
        compiled(dense)
    assert caught.value.code == "cuda.fragment.product"


def test_products_of_both_kinds_are_refused():
    lines = HALF.splitlines()
    product = next(line for line in lines if "S[i_3" in line)
    loop = next(line for line in lines if "for i_3" in line)
    other = [
        '        Z = T.alloc_buffer((64, 16), "float16", scope="fragment")',
        "        for k, j_9 in T.grid(64, 16):",
        "            Z[k, j_9] = B[k, j_9]",
        loop,
        product.replace("Y[", "Z["),
    ]
    at = lines.index(product) + 1
    with pytest.raises(UnsupportedError, match="and others in fragments") as caught:
        compiled("\n".join([*lines[:at], *other, *lines[at:]]))
    assert caught.value.code == "cuda.fragment.product"


def test_a_tile_that_cannot_be_swizzled_is_refused():
    wide = HALF.replace("for r in T.serial(64 * 16 // 128):", "for r in T.serial(2):").replace(
        "Y[(r * 128 + t) // 16, (r * 128 + t) % 16] = B[(r * 128 + t) // 16, (r * 128 + t) % 16]",
        "Y[t // 2, T.ramp(r * 4 + t % 2 * 2 + 1, 1, 4)] = B[t // 2, T.ramp(r * 4 + t % 2 * 2 + 1, 1, 4)]",
    )
    with pytest.raises(UnsupportedError, match="change places") as caught:
        compiled(wide)
    assert caught.value.code == "cuda.fragment.access"
