"""Products of N:M matrices and of blocks with the default schedules for GPUs, in the interpreter of PTX, and
for scalable vectors, against NumPy."""

import shutil
import subprocess

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.compilation.pipeline import stage_texts
from gossamer.operator_calls.operands.n_m_matrix import n_m_matrix
from gossamer.operator_calls.operator_kernels import kernel_for
from gossamer.operator_calls.operator_program import Variant, module_of, program_for
from gossamer.operators.matmul_24 import PROGRAM
from gossamer_cuda_mma_sp.instructions.matrix_instructions import PTX_TYPES
from gossamer_cuda_mma_sp.intrinsics.n_m_intrinsics import n_m_intrinsic
from gossamer_cuda_mma_sp.intrinsics.product_intrinsics import PAIRED_TILE, PRODUCT_INTRINSICS, TILE
from gossamer_ir.errors import FormatError
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module, print_module
from gossamer_testkit.bsr_product import bsr_product
from tests.integration.block_problems import block_problem
from tests.integration.math_oracle import tf32

TARGET = "cuda-mma-sp:driver=interpreter"
TILES, PAIRED_TILES = (size // 16 * (size // 8) for size in (TILE, PAIRED_TILE))
"""The instructions that multiply the tiles of a warp, and those of the pattern 4:8."""
SHAPES = [(16, 32, 8), (1, 4, 2), (5, 7, 3), (17, 66, 9), (40, 130, 33), (33, 64, 1)]


def n_m_array(rows, columns, dtype):
    """Small integers, of which products are exact."""
    dense = np.random.default_rng(rows).integers(-4, 5, (rows, columns))
    return gs.prune(dense.astype(np.float64), "2:4").toarray().astype(dtype)


def program_text(dtype):
    return print_module(module_of(PROGRAM, Variant(dtype)))


def dense_operand(rows, columns, dtype):
    return np.random.default_rng(columns).integers(-4, 5, (rows, columns)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "int8", "float32", "float64"])
@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_the_product_is_that_of_the_dense_matrix(m, n, k, dtype):
    A, B = n_m_array(m, n, dtype), dense_operand(n, k, dtype)
    product = gs.matmul_24(A, B, target=TARGET)
    np.testing.assert_array_equal(product, A.astype(np.int64) @ B.astype(np.int64))
    np.testing.assert_array_equal(product, gs.matmul_24(A, B))


def ptx(program, features, target=TARGET):
    kernel = gs.compile(program, target=target, specialize={"feat_size": features})
    return kernel.artifact.code.decode(errors="replace")


@pytest.mark.parametrize(
    ("dtype", "instruction"),
    [
        ("float16", "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"),
        ("int8", "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32"),
    ],
)
def test_sparse_tensor_cores_do_all_products(dtype, instruction):
    # Without the kernel for empty operands, which is in the same PTX, nothing else multiplies elements.
    grid = ptx(program_text(dtype), 16).split(".entry gossamer_kernel_1")[1].split(".entry")[0]
    assert grid.count(instruction) == TILES
    assert not any(word in grid for word in ("fma.", "mul.rn", "mul.f32", "mad.lo.s32"))


def test_what_was_chosen_is_explained():
    half = {"A": "float16", "B": "float16"}
    report = gs.explain("matmul_24", target=TARGET, dtypes=half)
    assert report.rule == "grid_n_m_spmm"
    assert report.decisions[-1].what == "the product by mma_sp_staged_product_float16"
    narrow = gs.explain("matmul_24", target=TARGET, dtypes=half, specialize={"feat_size": 64})
    assert narrow.decisions[-1].what == "the product by mma_sp_product_float16"
    single = gs.explain("matmul_24", target=TARGET)
    assert single.decisions[-1].what == "products by ordinary threads"
    older = gs.explain("matmul_24", target="cuda-mma-sp:arch=sm_75", dtypes=half)
    assert older.decisions[-1].what == "products by ordinary threads"


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
def test_transposed_operands_use_sparse_tensor_cores_too(architecture):
    target = f"cuda-mma-sp:arch={architecture},driver=interpreter"
    text = program_text("float16")
    text = text.replace("b, (J_detach, K)", "b, (K, J_detach)").replace(
        "B[g * 4 + j, k]", "B[k, g * 4 + j]"
    )
    text = text.replace("c, (I, K)", "c, (K, I)").replace("C[i, k]", "C[k, i]")
    A, B = n_m_array(20, 40, "float16"), dense_operand(40, 11, "float16")
    groups = A.reshape(20, 10, 4)
    indices = np.sort(np.argsort(groups == 0, axis=-1, kind="stable")[..., :2], axis=-1)
    arguments = {
        "a": np.take_along_axis(groups, indices, axis=-1),
        "indices": indices.astype(np.uint8),
        "b": np.ascontiguousarray(B.T),
        "m": 20,
        "groups": 10,
    }
    expected = "wgmma.mma_async.sp" if architecture == "sm_90a" else "mma.sp"
    assert expected in ptx(text, 11, target)
    C = np.zeros((11, 20), np.float32)
    gs.compile(text, target=target, specialize={"feat_size": 11})(c=C, **arguments)
    np.testing.assert_array_equal(C.T, A.astype(int) @ B.astype(int))


def test_the_lowered_program_means_the_same_in_the_reference_interpreter():
    schedule = gs.schedule(program_text("float16"), target=TARGET, specialize={"feat_size": 3})
    report = gs.explain(
        "matmul_24",
        target=TARGET,
        dtypes={"A": "float16", "B": "float16"},
        specialize={"feat_size": 3},
    )
    lowered = schedule.lower().lower()
    for step in report.schedule.loop:
        lowered = getattr(lowered, step.op)(**step.args)
    module = lowered.module
    A, B = n_m_array(5, 12, "float16"), dense_operand(12, 3, "float16")
    groups = A.reshape(5, 3, 4)
    indices = np.sort(np.argsort(groups == 0, axis=-1, kind="stable")[..., :2], axis=-1)
    C = np.zeros((5, 3), np.float32)
    run(
        module,
        {
            "a": np.take_along_axis(groups, indices, axis=-1),
            "indices": indices.astype(np.uint8),
            "b": B,
            "c": C,
            "m": 5,
            "groups": 3,
        },
    )
    np.testing.assert_array_equal(C, A.astype(int) @ B.astype(int))


def test_a_matrix_that_is_not_two_of_four_is_refused_on_every_target():
    with pytest.raises(FormatError, match="Row 0 has 3 nonzeros in the columns 0 to 2"):
        gs.matmul_24(np.ones((1, 3), np.float16), np.ones((3, 2), np.float16), target=TARGET)


@pytest.mark.parametrize("dtype", ["float16", "float32", "tfloat32", "int8"])
@pytest.mark.parametrize("size", [(16, 16, 32), (7, 5, 9), (33, 2, 37), (4, 4, 64)], ids=str)
def test_blocks_are_multiplied_by_tensor_cores_or_threads(size, dtype):
    height, width, features = size
    for sizes in ({}, {"bh": height, "bw": width, "feat": features}):
        kernel = gs.compile(bsr_product(dtype), target=TARGET, specialize=sizes)
        block_problem(height, width, features, dtype=dtype).require(kernel, sizes=sizes)


@pytest.mark.parametrize("lengths", [(), (0,), (0, 0, 4), (1, 0)], ids=str)
def test_block_rows_may_be_empty(lengths):
    kernel = gs.compile(bsr_product("float16"), target=TARGET)
    block_problem(16, 8, 20, dtype="float16", lengths=lengths).require(kernel)


@pytest.mark.parametrize(
    ("dtype", "instruction"),
    [
        ("float16", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
        ("tfloat32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"),
        ("uint8", "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32"),
    ],
)
def test_a_matrix_instruction_multiplies_a_tile_of_a_block(dtype, instruction):
    kernel = gs.compile(bsr_product(dtype), target=TARGET)
    text = kernel.artifact.code.decode(errors="replace")
    assert text.count(instruction) == 1
    report = gs.explain(bsr_product(dtype), target=TARGET)
    assert report.decisions[-1].what == f"the blocks of a block row by mma_block_product_{dtype}"


def test_tensors_in_bsr_are_multiplied_as_before():
    dense = np.kron(np.eye(3), np.ones((2, 2))).astype(np.float32)
    blocks = sparse.bsr_array(dense, blocksize=(2, 2))
    B = np.arange(30, dtype=np.float32).reshape(6, 5)
    np.testing.assert_array_equal(gs.spmm(blocks, B, target=TARGET), dense @ B)


PAIRS = """
@T.prim_func
def product(a: T.handle, e: T.handle, b: T.handle, c: T.handle, m: T.int64, g: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    G = T.sp.dense_fixed(g, parent=I)
    J = T.sp.compressed_fixed(G, (2, 1), e, "uint8", padded=False)
    N = T.sp.dense_fixed(g * 2)
    K = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, G, J), "float32")
    B = T.sp.match_buffer(b, (N, K), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, G, J, K], "SRRS", "product") as [i, q, s, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + T.tf32(A[i, q, s]) * T.tf32(B[q * 2 + s, k])
"""
"""The product of a matrix with the pattern 1:2, in TF32."""


WARPGROUPS = "cuda-mma-sp:arch=sm_90a,driver=interpreter"
"""Four warps multiply together on GPUs of this architecture."""


@pytest.mark.parametrize("target", [TARGET, WARPGROUPS, "generic-cpu"])
@pytest.mark.parametrize("is_transposed", [False, True])
def test_one_of_two_columns_is_multiplied_in_tf32(target, is_transposed):
    rng = np.random.default_rng(0)
    a = rng.integers(-2048, 2049, (19, 11, 1)).astype(np.float32)
    e = rng.integers(0, 2, (19, 11, 1)).astype(np.uint8)
    b = rng.integers(-2048, 2049, (22, 9)).astype(np.float32)
    # Numbers that are not in TF32 are rounded.
    a[0, 0], b[0, 0] = 2049, 4098.5
    dense = np.zeros((19, 11, 2))
    np.put_along_axis(dense, e.astype(int), tf32(a), -1)
    text = PAIRS
    if is_transposed:
        text = text.replace("b, (N, K)", "b, (K, N)").replace("B[q * 2 + s, k]", "B[k, q * 2 + s]")
    kernel = gs.compile(text, target=target, specialize={"n": 9})
    c = np.full((19, 9), np.nan, np.float32)
    kernel(a=a, e=e, b=np.ascontiguousarray(b.T) if is_transposed else b, c=c, m=19, g=11)
    expected = dense.reshape(19, 22) @ tf32(b).astype(np.float64)
    # Up to 11 products of 22 bits are added in float32, whose significand has 24.
    np.testing.assert_allclose(c, expected, rtol=0, atol=22 * 2.0**-24 * 11 * 2.0**22)
    code = kernel.artifact.code.decode(errors="replace")
    if target == TARGET:
        assert code.count("m16n8k16.row.col.f32.tf32.tf32.f32") == TILES
    assert ("m64n64k16.f32.tf32.tf32" in code) == (target == WARPGROUPS)


def test_the_rule_says_which_patterns_and_precisions_an_instruction_has():
    report = gs.explain(PAIRS, target=TARGET, specialize={"n": 9})
    assert report.decisions[-1].what == "the product by mma_sp_product_tfloat32"
    plain = PAIRS.replace(
        "T.tf32(A[i, q, s]) * T.tf32(B[q * 2 + s, k])", "A[i, q, s] * B[q * 2 + s, k]"
    )
    report = gs.explain(plain, target=TARGET, specialize={"n": 9})
    assert "these are float32 with 1:2 and sums in float32" in report.decisions[-1].why


PAIRED = """
@T.prim_func
def product(a: T.handle, e: T.handle, b: T.handle, c: T.handle, m: T.int64, g: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    A = T.match_buffer(a, (m, g, 2, 2), "int8")
    E = T.match_buffer(e, (m, g, 2), "uint8")
    B = T.match_buffer(b, (g * 8, n), "int8")
    C = T.match_buffer(c, (m, n), "int32")
    T.assume(in_range(E, 0, 4))
    T.assume(sorted_segments(E, unique=True))
    T.assume(in_range(A, -8, 8))
    T.assume(in_range(B, -8, 8))
    for i, q, s, p, j in T.grid(m, g, 2, 2, n):
        with T.block("product"):
            vi, vq, vs, vp, vj = T.axis.remap("SRRRS", [i, q, s, p, j])
            C[vi, vj] = C[vi, vj] + T.int32(A[vi, vq, vs, vp]) * T.int32(B[(vq * 4 + T.int64(E[vi, vq, vs])) * 2 + vp, vj])
"""  # noqa: E501  (scripts have no line breaks inside an expression)
OLDER = "cuda-mma-sp:arch=sm_80,driver=interpreter"
"""GPUs from sm_90 on emulate instructions for int4."""


def test_two_of_four_pairs_of_int4_are_multiplied():
    rng = np.random.default_rng(1)
    m, groups, n = 18, 17, 9
    units = np.sort(np.argsort(rng.random((m, groups, 4)), axis=-1)[..., :2], axis=-1)
    a, b = rng.integers(-8, 8, (m, groups, 2, 2)), rng.integers(-8, 8, (8 * groups, n))
    dense = np.zeros((m, groups, 4, 2), np.int64)
    np.put_along_axis(dense, units[..., None], a, axis=-2)
    schedule = gs.schedule(PAIRED, target=OLDER)
    schedule.sparse_tensorize("i", intrinsic="mma_sp_product_int4")
    kernel = gs.compile(schedule, target=OLDER)
    c = rng.integers(-4, 5, (m, n)).astype(np.int32)
    expected = dense.reshape(m, -1) @ b + c
    kernel(
        a=a.astype(np.int8), e=units.astype(np.uint8), b=b.astype(np.int8), c=c, m=m, g=groups, n=n
    )
    np.testing.assert_array_equal(c, expected)
    assert "m16n8k128.row.col.s32.s4.s4.s32" in kernel.artifact.code.decode(errors="replace")


def integers_for(precision, m, n, k):
    """A matrix with the pattern of a precision, and a dense operand; their products are exact."""
    rng = np.random.default_rng(m)
    slots, width = (1, 1) if precision == "tfloat32" else (2, 2)
    least = 0 if precision == "uint4" else -8
    groups = rng.integers(least, 16 + least, (m, -(-n // (2 * slots * width)), 2 * slots, width))
    order = np.argsort(rng.random(groups.shape[:3]), axis=-1)
    np.put_along_axis(groups, order[..., slots:, None], 0, axis=2)
    return groups.reshape(m, -1)[:, :n], rng.integers(least, 16 + least, (n, k))


STORED = {"tfloat32": "float32", "int4": "int8", "uint4": "uint8"}


@pytest.mark.parametrize("precision", STORED)
@pytest.mark.parametrize(("m", "n", "k"), [(1, 4, 2), (17, 66, 9), (40, 130, 33), (33, 64, 1)])
def test_products_in_other_precisions_are_those_of_the_dense_matrix(m, n, k, precision):
    A, B = integers_for(precision, m, n, k)
    operands = (A.astype(STORED[precision]), B.astype(STORED[precision]))
    product = gs.matmul_24(*operands, precision, target=OLDER)
    np.testing.assert_array_equal(product, A @ B)
    np.testing.assert_array_equal(product, gs.matmul_24(*operands, precision))


@pytest.mark.parametrize(
    ("precision", "instruction"),
    [
        ("tfloat32", "m16n8k16.row.col.f32.tf32.tf32.f32"),
        ("int4", "m16n8k128.row.col.s32.s4.s4.s32"),
        ("uint4", "m16n8k128.row.col.s32.u4.u4.s32"),
        ("uint8", "m16n8k64.row.col.s32.u8.u8.s32"),
    ],
)
def test_the_instruction_of_a_precision_is_used_where_it_is_native(precision, instruction):
    dtypes = {"A": precision, "B": precision}
    report = gs.explain("matmul_24", target=OLDER, dtypes=dtypes)
    kind = "staged_product" if precision == "tfloat32" else "product"
    assert report.decisions[-1].what == f"the product by mma_sp_{kind}_{precision}"
    newer = gs.explain("matmul_24", target="cuda-mma-sp:arch=sm_90", dtypes=dtypes).decisions[-1]
    assert ("ordinary threads" in newer.what) == precision.endswith("int4")
    stored = STORED.get(precision, precision)
    module = module_of(program_for(PROGRAM, precision), Variant(stored))
    code = ptx(print_module(module), 16, target=OLDER)
    tiles = PAIRED_TILES if precision.endswith("int4") else TILES
    assert code.count(f"mma.sp::ordered_metadata.sync.aligned.{instruction}") == tiles


HALVES = """
@T.prim_func
def product(a: T.handle, e: T.handle, b: T.handle, c: T.handle, m: T.int64, g: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    A = T.match_buffer(a, (m, g, 2), "float16")
    E = T.match_buffer(e, (m, g, 2), "uint8")
    B = T.match_buffer(b, (g * 4, n), "float16")
    C = T.match_buffer(c, (m, n), "float32")
    T.assume(in_range(E, 0, 4))
    T.assume(sorted_segments(E, unique=True))
    for i, q, s, j in T.grid(m, g, 2, n):
        with T.block("product"):
            vi, vq, vs, vj = T.axis.remap("SRRS", [i, q, s, j])
            C[vi, vj] = C[vi, vj] + T.float32(A[vi, vq, vs]) * T.float32(B[vq * 4 + T.int64(E[vi, vq, vs]), vj])
"""  # noqa: E501  (scripts have no line breaks inside an expression)


@pytest.mark.parametrize("shape", [(1, 4, 2), (130, 140, 66), (64, 64, 128), (200, 260, 131)])
def test_staged_tiles_have_the_same_products(shape):
    m, n, k = shape
    groups = n_m_array(m, n, "float16").reshape(m, n // 4, 4)
    indices = np.sort(np.argsort(groups == 0, axis=-1, kind="stable")[..., :2], axis=-1)
    values = np.ascontiguousarray(np.take_along_axis(groups, indices, axis=-1))
    B, C = dense_operand(n, k, "float16"), np.ones((m, k), np.float32)
    schedule = gs.schedule(HALVES, target=TARGET)
    schedule.sparse_tensorize("i", intrinsic="mma_sp_staged_product_float16")
    kernel = gs.compile(schedule, target=TARGET)
    kernel(a=values, e=indices.astype(np.uint8), b=B, c=C, m=m, g=n // 4, n=k)
    np.testing.assert_array_equal(C, groups.reshape(m, n).astype(int) @ B.astype(int) + 1)


@pytest.mark.parametrize("shape", [(1, 2, 2), (130, 70, 66), (64, 64, 128)])
def test_staged_tiles_round_to_tf32(shape):
    m, n, k = shape
    staged = next(
        each for each in PRODUCT_INTRINSICS if each.name.endswith("staged_product_tfloat32")
    )
    indices = np.random.default_rng(m).integers(0, 2, (m, n // 2)).astype(np.uint8)
    # Rounded up, and not cut.
    values = dense_operand(m, n // 2, "float32") * np.float32(1 + 3 * 2**-12)
    B, C = dense_operand(n, k, "float32"), np.ones((m, k), np.float32)
    schedule = gs.schedule(n_m_intrinsic(staged).semantics, target=TARGET)
    schedule.sparse_tensorize("i", intrinsic=staged.name)
    kernel = gs.compile(schedule, target=TARGET)
    code = kernel.artifact.code.decode(errors="replace")
    assert code.count("m16n8k16.row.col.f32.tf32.tf32.f32") == 4 * 4 * 2
    assert "cp.async.c" in code
    kernel(a=values, e=indices, b=B, c=C, rows=m, groups=n // 2, features=k)
    dense = np.zeros((m, n // 2, 2))
    np.put_along_axis(dense, indices[..., None].astype(int), tf32(values)[..., None], axis=-1)
    np.testing.assert_array_equal(C, dense.reshape(m, n) @ B + 1)


@pytest.mark.parametrize(("rows", "features", "is_staged"), [(16, 512, False), (4096, 512, True)])
def test_operators_stage_tiles_where_there_are_enough_rows_and_features(rows, features, is_staged):
    spec = n_m_matrix(n_m_array(rows, 16, "float16")).kernel_spec(
        PROGRAM, dtype="float16", features=features
    )
    code = kernel_for(spec, target=TARGET).kernel.artifact.code.decode(errors="replace")
    assert ("ldmatrix" in code) == is_staged
    assert "mma.sp::ordered_metadata" in code


ADA = "cuda-mma-sp:arch=sm_89,driver=interpreter"
"""GPUs of this architecture have instructions for float8."""


@pytest.mark.parametrize(
    ("precision", "bits"),
    [("float8_e4m3", [0, 0x38, 0x40, 0xC4, 0xB0]), ("float8_e5m2", [0, 0x3C, 0x40, 0xC2, 0xB8])],
)
def test_bits_of_float8_are_multiplied_by_sparse_tensor_cores(precision, bits):
    values, bits = np.array([0, 1, 2, -3, -0.5]), np.array(bits, np.uint8)
    rng = np.random.default_rng(7)
    A, B = rng.integers(0, 5, (19, 70)), rng.integers(0, 5, (70, 9))
    A[:, 1::4] = A[:, 3::4] = 0
    for target in (ADA, WARPGROUPS):
        product = gs.matmul_24(bits[A], bits[B], precision, target=target)
        np.testing.assert_array_equal(product, values[A] @ values[B])
    module = module_of(program_for(PROGRAM, precision), Variant("uint8"))
    name = PTX_TYPES[precision]
    instruction = f"sync.aligned.m16n8k64.row.col.f32.{name}.{name}.f32"
    assert ptx(print_module(module), 9, target=ADA).count(instruction) == TILES
    dtypes = {"A": precision, "B": precision}
    emulated = gs.explain("matmul_24", target="cuda-mma-sp:arch=sm_90", dtypes=dtypes)
    assert emulated.decisions[-1].what == "products by ordinary threads"


def bfloat16(matrix):
    """Small integers as bfloat16."""
    return (matrix.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def test_a_program_in_bfloat16_uses_sparse_tensor_cores():
    text = program_text("float16").replace("float16", "bfloat16")
    groups = n_m_array(17, 40, "float32").reshape(17, 10, 4)
    indices = np.sort(np.argsort(groups == 0, axis=-1, kind="stable")[..., :2], axis=-1)
    values = np.ascontiguousarray(np.take_along_axis(groups, indices, axis=-1))
    B, C = dense_operand(40, 9, "float32"), np.zeros((17, 9), np.float32)
    assert "row.col.f32.bf16.bf16.f32" in ptx(text, 9)
    kernel = gs.compile(text, target=TARGET, specialize={"feat_size": 9})
    kernel(
        a=bfloat16(values),
        indices=indices.astype(np.uint8),
        b=bfloat16(B),
        c=C,
        m=17,
        groups=10,
    )
    np.testing.assert_array_equal(C, groups.reshape(17, 40).astype(int) @ B.astype(int))


@pytest.mark.parametrize("architecture", ["sm_80", "sm_89", "sm_90", "sm_100"])
def test_ptxas_assembles_the_products(architecture, tmp_path):
    program = shutil.which("ptxas")
    if program is None:
        pytest.skip("there is no ptxas")
    programs = (
        parse_module(program_text("float16")),
        bsr_product("float16"),
        bsr_product("int8"),
        bsr_product("tfloat32"),
        parse_module(PAIRS),
        module_of(
            program_for(PROGRAM, "float8_e4m3" if architecture == "sm_89" else "uint4"),
            Variant("uint8"),
        ),
    )
    for number, module in enumerate(programs):
        source = tmp_path / f"{number}.ptx"
        text = stage_texts(module, target=f"cuda-mma-sp:arch={architecture}")["asm"]
        source.write_text(text)
        command = [program, "-arch", architecture, "-v", "-o", str(tmp_path / "cubin"), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        # Advice would say that an instruction is emulated.
        assert "dvisory" not in done.stderr
        assert " 0 bytes spill stores, 0 bytes spill loads" in done.stderr


@pytest.mark.unserialized
@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_scalable_vectors_have_the_same_products(dtype):
    for bits in (128, 512):
        for k in (1, 9, 70):
            A, B = n_m_array(5, 13, dtype), dense_operand(13, k, dtype)
            product = gs.matmul_24(A, B, target=f"llvm-sve:vector_bits={bits}")
            np.testing.assert_array_equal(product, A.astype(int) @ B.astype(int))


@pytest.mark.parametrize(
    ("dtype", "shape"), [("float16", (70, 140, 66)), ("int8", (5, 7, 3)), ("uint8", (64, 128, 64))]
)
def test_warpgroups_multiply_the_tiles_of_one_target(dtype, shape):
    m, n, k = shape
    A, B = np.abs(n_m_array(m, n, "int8")), np.abs(dense_operand(n, k, "int8"))
    product = gs.matmul_24(A.astype(dtype), B.astype(dtype), target=WARPGROUPS)
    np.testing.assert_array_equal(product, A.astype(np.int64) @ B.astype(np.int64))


def test_the_intrinsic_of_warpgroups_is_explained():
    report = gs.explain("matmul_24", target=WARPGROUPS, dtypes={"A": "float16", "B": "float16"})
    assert report.decisions[-1].what == "the product by wgmma_sp_product_float16_256"
    assert "tiles of 128 rows and 256 features" in report.decisions[-1].why
    assert "wgmma.mma_async.sp" in ptx(program_text("float16"), 16, WARPGROUPS)
    assert "wgmma" not in ptx(
        program_text("float16"), 16, "cuda-mma-sp:arch=sm_90,driver=interpreter"
    )
