"""Programs over CSR with schedules in scalable vectors, emulated at every vector length of each backend."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.cli import main
from gossamer.compilation.pipeline import stage_texts
from gossamer.operator_calls.operator_program import Variant, module_of
from gossamer.operators import operator_named
from gossamer.operators.spmv import SCRIPT as SPMV
from gossamer_ir.core.dtypes import NUMBERS, vscale_factor
from gossamer_ir.errors import UserError
from gossamer_ir.interchange.records import Schedule
from gossamer_testkit.matrices.oracles import attention
from tests.fuzzing.execution.compilers import COMPILERS
from tests.integration.emulated_targets import bits_of
from tests.integration.scalable_programs import BUILDERS, operands, spmm

LANES = "4 * T.vscale()"
DTYPES = [
    *((dtype, "int32") for dtype in NUMBERS),
    *(
        (dtype, index_dtype)
        for dtype in ("float32", "float64")
        for index_dtype in ("int64", "uint16")
    ),
]
"""The dtypes of values and of index arrays."""


@pytest.mark.unserialized
@pytest.mark.parametrize("registers", [1, 4])
@pytest.mark.parametrize(("dtype", "index_dtype"), DTYPES)
@pytest.mark.parametrize("name", BUILDERS)
def test_products_are_right_in_every_dtype_at_every_vector_length(
    name, dtype, index_dtype, registers, emulated_backend
):
    require_right_products(name, dtype, index_dtype, registers, emulated_backend)


def require_right_products(name, dtype, index_dtype, registers, backend):
    """At every vector length, with vectors of so many registers."""
    factor, compiler = int(registers * vscale_factor(dtype)), COMPILERS[backend]
    builder = BUILDERS[name](f"{factor} * T.vscale()", dtype, index_dtype)
    *_, flat = compiler.stages(builder.module)
    for target, kernel in zip(compiler.targets, compiler.kernels(flat), strict=True):
        bits = bits_of(target)
        lanes = factor * bits // 128
        for size in (0, 1, lanes - 1, lanes, lanes + 1, 37, 115):
            arguments, expected = operands(name, size, dtype, index_dtype)
            kernel(**arguments)
            np.testing.assert_array_equal(arguments["c"], expected, err_msg=f"{bits} bits, {size}")


@pytest.mark.unserialized
@pytest.mark.parametrize(
    ("dtype", "registers"),
    [("float32", 0.5), ("float32", 2), ("float32", 8), ("float32", 16), ("float64", 2),
     ("float64", 8), ("float64", 16), ("int8", 0.5), ("int8", 2)],
)  # fmt: skip
@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("emulated_backend", ["llvm-rvv"], indirect=True)
def test_vectors_may_be_half_a_register_or_groups_of_registers(
    name, dtype, registers, emulated_backend
):
    """A group has 8 registers at most; LLVM makes two of 16."""
    require_right_products(name, dtype, "int32", registers, emulated_backend)


@pytest.mark.parametrize(
    ("name", "instructions"),
    [
        ("spmv", (r"whilelo\tp\d+\.s", r"ld1w\t\{ z\d+\.s \}, p\d+/z, \[x\d+, z\d+\.s, [us]xtw #2\]",
                  r"fmla\tz\d+\.s, p\d+/m")),
        ("spmm", (r"whilelo\tp\d+\.s", r"fm(la|ad)\tz\d+\.s, p\d+/m")),
    ],
)  # fmt: skip
def test_the_assembly_has_predicated_vectors_and_no_scalar_remainder(name, instructions):
    text = assembly_of(BUILDERS[name](LANES), "llvm-sve")
    for instruction in instructions:
        assert re.search(instruction, text), instruction
    # A scalar loop would multiply and add in scalar registers.
    assert not re.search(r"fmadd\ts|fmul\ts", text)


def assembly_of(builder, target):
    return stage_texts(builder.program, schedule=Schedule(loop=builder.trace), target=target)["asm"]


@pytest.mark.parametrize(
    ("lanes", "group"), [("4", "m1"), ("8", "m2"), ("16", "m4"), ("32", "m8"), ("64", "m8")]
)
def test_an_instruction_of_riscv_computes_a_group_of_registers(lanes, group):
    text = assembly_of(BUILDERS["spmv"](f"{lanes} * T.vscale()"), "llvm-rvv")
    for instruction in (
        rf"vsetvli\t\w+, \w+, e32, {group}, ",
        r"vmsltu\.v[vx]\t",
        r"vle32\.v\tv\d+, \(\w+\), v0\.t",
        r"vluxei64\.v\tv\d+, \(\w+\), v\d+, v0\.t",
        r"vfm(acc|add)\.vv\tv\d+, v\d+, v\d+, v0\.t",
        r"vfredusum\.vs\t",
    ):
        assert re.search(instruction, text), instruction
    assert not re.search(r"fmadd\.s|fmul\.s", text)


@pytest.mark.unserialized
def test_default_schedules_are_right_at_every_vector_length(emulated_target):
    target, lanes = emulated_target, bits_of(emulated_target) // 32
    for size in (0, 1, lanes - 1, lanes, lanes + 1, 37, 115):
        arguments, expected = operands("spmv", size)
        matrix = sparse.csr_array(
            (arguments["a"], arguments["indices"], arguments["indptr"]), shape=(7, size)
        )
        np.testing.assert_array_equal(gs.spmv(matrix, arguments["b"], target=target), expected)
    for size in (lanes + 1, 128):
        arguments, expected = operands("spmm", size)
        matrix = sparse.csr_array(
            (arguments["a"], arguments["indices"], arguments["indptr"]), shape=(7, 9)
        )
        np.testing.assert_array_equal(gs.spmm(matrix, arguments["b"], target=target), expected)
        arguments, expected = operands("sddmm", size)
        result = gs.sddmm(matrix, arguments["b"], arguments["d"], target=target)
        rows, columns = matrix.nonzero()
        products = np.einsum("ek,ek->e", arguments["b"][rows], arguments["d"][columns])
        np.testing.assert_array_equal(result.data, products)


ROW_LENGTHS = (0, 1, 2, 3, 15, 16, 17, 31, 40, 0)
"""Rows with each of the groups of elements that share a row, and with each number of elements left over."""


def matrix_with_rows(lengths, columns):
    rng = np.random.default_rng(len(lengths))
    indices = [np.sort(rng.choice(columns, length, replace=False)) for length in lengths]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    values = rng.integers(1, 4, indptr[-1]).astype(np.float32)
    return sparse.csr_array(
        (values, np.concatenate(indices), indptr), shape=(len(lengths), columns)
    )


@pytest.mark.unserialized
@pytest.mark.parametrize("vectors", [1, 6])
def test_rows_are_right_in_groups_of_vectors_and_without(vectors, emulated_target):
    """Rows fill a group of vectors on average, or do not. Without statistics, the kernel finds out. The last
    row is left over from the groups of rows."""
    lanes = bits_of(emulated_target) // 32
    length = vectors * lanes
    lengths = (0, length - 1, length, length + 1, 0, 2 * length + lanes + 3, 4 * lanes, 1, length)
    matrix = matrix_with_rows(lengths, 13 * lanes + 10)
    x = np.random.default_rng(lanes).integers(-3, 4, matrix.shape[1]).astype(np.float32)
    np.testing.assert_array_equal(gs.spmv(matrix, x, target=emulated_target), matrix @ x)
    kernel = gs.compile(SPMV, target=emulated_target)
    y = np.full(matrix.shape[0], np.nan, np.float32)
    sizes = {"m": matrix.shape[0], "n": matrix.shape[1], "nnz": matrix.nnz}
    indices = {"indptr": matrix.indptr.astype(np.int32), "indices": matrix.indices.astype(np.int32)}
    kernel(a=matrix.data, x=x, y=y, **indices, **sizes)
    np.testing.assert_array_equal(y, matrix @ x)


@pytest.mark.unserialized
def test_products_of_rows_are_right_with_all_groups_and_tiles(emulated_target):
    target, matrix = emulated_target, matrix_with_rows(ROW_LENGTHS, 70)
    rows, columns = matrix.nonzero()
    rng = np.random.default_rng(bits_of(target))
    for features in (5, 33, 130):
        x = rng.integers(-3, 4, (matrix.shape[0], features)).astype(np.float32)
        y = rng.integers(-3, 4, (matrix.shape[1], features)).astype(np.float32)
        np.testing.assert_array_equal(gs.spmm(matrix, y, target=target), matrix @ y)
        result = gs.sddmm(matrix, x, y, target=target)
        np.testing.assert_array_equal(result.data, np.einsum("ek,ek->e", x[rows], y[columns]))


@pytest.mark.unserialized
@pytest.mark.parametrize("size", [2, 8, 16])
def test_blocks_are_right_at_every_vector_length(size, emulated_target):
    target, rng = emulated_target, np.random.default_rng(size)
    pattern = matrix_with_rows((2, 0, 4, 1, 0), 6)
    blocks = rng.integers(1, 4, (pattern.nnz, size, size)).astype(np.float32)
    shape = (5 * size, 6 * size)
    matrix = sparse.bsr_array((blocks, pattern.indices, pattern.indptr), shape=shape)
    for features in (1, 20, 130):
        b = rng.integers(-3, 4, (6 * size, features)).astype(np.float32)
        np.testing.assert_array_equal(gs.spmm(matrix, b, target=target), matrix @ b)


@pytest.mark.unserialized
def test_attention_is_right_at_every_vector_length(emulated_target):
    target, pattern = emulated_target, matrix_with_rows(ROW_LENGTHS, 70)
    rng = np.random.default_rng(bits_of(target))
    for features in (3, 33):
        q = rng.standard_normal((pattern.shape[0], features)).astype(np.float32)
        k, v = rng.standard_normal((2, 70, features)).astype(np.float32)
        expected = attention(pattern, q, k, v)
        result = gs.attention(pattern, q, k, v, target=target)
        np.testing.assert_allclose(result, expected, rtol=0, atol=2e-5)


ELEMENTWISE = """
@T.prim_func
def square(a: T.handle, c: T.handle, indptr: T.handle, indices: T.handle,
           m: T.int64, n: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32")
    A = T.sp.match_buffer(a, (I, J), "float32")
    C = T.sp.match_buffer(c, (I, J), "float32")
    with T.sp.iteration([I, J], "SS", "square") as [i, j]:
        C[i, j] = A[i, j] * A[i, j]
"""


@pytest.mark.unserialized
def test_elements_are_in_scalable_vectors(emulated_target):
    target, lanes = emulated_target, bits_of(emulated_target) // 32
    assert "4 * T.vscale()" in gs.explain(ELEMENTWISE, target=target).decisions[1].what
    kernel = gs.compile(ELEMENTWISE, target=target)
    for size in (0, 1, lanes - 1, lanes, lanes + 1, 115):
        a = np.arange(size, dtype=np.float32)
        c, indices = np.full_like(a, np.nan), np.arange(size, dtype=np.int32)
        kernel(a=a, c=c, indptr=np.array([0, size], np.int32), indices=indices,
               m=1, n=size, nnz=size)  # fmt: skip
        np.testing.assert_array_equal(c, a * a)


@pytest.mark.unserialized
@pytest.mark.parametrize(
    ("name", "features", "instructions"),
    [
        ("spmv", None, (r"ld1w\t\{ z\d+\.s \}, p\d+/z, \[x\d+, z\d+\.s, [us]xtw #2\]",)),
        ("spmm", 128, ()),
        ("spmm", 20, ()),
        ("sddmm", 128, ()),
    ],
)  # fmt: skip
def test_default_schedules_have_predicated_vectors_and_no_scalar_remainder(
    name, features, instructions
):
    module = module_of(operator_named(name).program, Variant(features=features))
    text = stage_texts(module, target="llvm-sve")["asm"]
    common = (r"whilelo\tp\d+\.s", r"ld1w\t\{ z\d+\.s \}, p\d+/z", r"fm(la|ad)\tz\d+\.s, p\d+/m")
    for instruction in (*common, *instructions):
        assert re.search(instruction, text), instruction
    # Neither a scalar loop, nor vectors of fixed lanes, nor spilled vectors or predicates.
    assert not re.search(r"fmadd\ts|fmul\ts|fmla\tv|(str|ldr)\t[zp]\d+, \[(sp|x29)", text)
    products = [body for body in innermost_loops(text) if re.search(r"fm(la|ad)\tz", body)]
    assert products
    assert not any("[sp" in body for body in products)


def innermost_loops(text):
    """Return the instructions of the loops of AArch64 assembly that contain no label."""
    branch = r"\t(?:b\.\w+\t|cbn?z\t\w+, )"
    loops = re.finditer(rf"^(\.L\w+):.*\n((?:\t.*\n|\s*//.*\n)*?{branch}\1\n)", text, re.MULTILINE)
    return [loop[2] for loop in loops]


@pytest.mark.parametrize(("target", "machine"), [("llvm-sve", 183), ("llvm-rvv", 243)])
def test_export_needs_no_emulator(target, machine, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    builder = spmm(LANES)
    files = gs.export(builder.program, tmp_path, schedule=builder, target=target)
    assert files.object.read_bytes()[18:20] == machine.to_bytes(2, "little")  # EM_AARCH64, EM_RISCV


def test_explain_shows_the_schedule_for_a_target():
    report = gs.explain("spmm", target="llvm-sve:cpu=neoverse-v1", specialize={"feat_size": 64})
    assert "4 * T.vscale() lanes" in report.decisions[1].what
    assert "predicate register" in report.decisions[0].why


@pytest.fixture
def threads():
    """Restores the number of threads."""
    before = gs.get_num_threads()
    yield
    gs.set_num_threads(before)


@pytest.mark.usefixtures("threads")
def test_run_says_that_it_emulates(emulated_backend, tmp_path, capsys):
    path = tmp_path / "a.npz"
    sparse.save_npz(path, sparse.random_array((30, 40), density=0.2, format="csr", dtype="f4"))
    arguments = ["run", "spmm", "--matrix", str(path), "--repeat", "1", "--check", "--threads", "2"]
    target = f"{emulated_backend}:vector_bits=512"
    assert main([*arguments, "--features", "20", "--target", target]) == 0
    printed = capsys.readouterr().out
    emulator = {"llvm-sve": "qemu-aarch64-static", "llvm-rvv": "qemu-riscv64-static"}[
        emulated_backend
    ]
    assert f"on        1 thread, {target}, emulated by {emulator}" in printed
    assert "within the rounding" in printed


def test_a_wrong_option_is_an_error():
    with pytest.raises(UserError, match="'rows' is not an option of llvm-sve"):
        gs.compile(spmm(LANES).program, target="llvm-sve:rows=4")
