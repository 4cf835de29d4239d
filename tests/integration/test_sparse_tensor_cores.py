"""Products of 2:4 matrices and of blocks with the default schedules for GPUs, in the interpreter of PTX, and
for scalable vectors, against NumPy."""

import shutil
import subprocess

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.operator_calls.operator_program import Variant, module_of
from gossamer.operators.matmul_24 import PROGRAM
from gossamer.pipeline import stage_texts
from gossamer_ir.errors import FormatError
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module, print_module
from gossamer_testkit.bsr_product import bsr_product
from tests.integration.block_problems import block_problem

TARGET = "cuda-mma-sp:driver=interpreter"
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
    assert grid.count(instruction) == 1
    assert not any(word in grid for word in ("fma.", "mul.rn", "mul.f32", "mad.lo.s32"))


def test_what_was_chosen_is_explained():
    half = {"A": "float16", "B": "float16"}
    report = gs.explain("matmul_24", target=TARGET, dtypes=half)
    assert report.rule == "grid_n_m_spmm"
    assert report.decisions[-1].what == "the product by mma_sp_product_float16"
    single = gs.explain("matmul_24", target=TARGET)
    assert single.decisions[-1].what == "products by ordinary threads"
    older = gs.explain("matmul_24", target="cuda-mma-sp:arch=sm_75", dtypes=half)
    assert older.decisions[-1].what == "products by ordinary threads"


def test_transposed_operands_use_sparse_tensor_cores_too():
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
    assert "mma.sp" in ptx(text, 11)
    C = np.zeros((11, 20), np.float32)
    gs.compile(text, target=TARGET, specialize={"feat_size": 11})(c=C, **arguments)
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


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
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
    programs = (parse_module(program_text("float16")), bsr_product("float16"), bsr_product("int8"))
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
