"""Programs over CSR with schedules in scalable vectors, emulated at every vector length of Arm SVE."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.cli import main
from gossamer.pipeline import stage_texts
from gossamer.resolve_target import registry
from gossamer_ir.errors import UserError
from gossamer_ir.interchange.records import Schedule, Target
from gossamer_ir.script import parse_module
from gossamer_lower import lower_buffers, lower_iterations
from gossamer_schedule import ScheduleBuilder

pytestmark = pytest.mark.unserialized

LANES = "4 * T.vscale()"
HEADER = """
@T.prim_func
def program(a: T.handle, b: T.handle, c: T.handle, indptr: T.handle, indices: T.handle,
            m: T.int64, n: T.int64, nnz: T.int64, features: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32", sorted=False, unique=False)
    J_detach = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
"""
SPMV = """
    B = T.sp.match_buffer(b, (J_detach,), "float32")
    C = T.sp.match_buffer(c, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "spmv") as [i, j]:
        with T.init():
            C[i] = 0.0
        C[i] = C[i] + A[i, j] * B[j]
"""
SPMM = """
    K = T.sp.dense_fixed(features)
    B = T.sp.match_buffer(b, (J_detach, K), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, J, K], "SRS", "spmm") as [i, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + A[i, j] * B[j, k]
"""


def loops(body):
    return ScheduleBuilder(lower_buffers(lower_iterations(parse_module(HEADER + body))))


def spmv():
    """The elements of a row in lanes."""
    return (
        loops(SPMV)
        .cache_write("spmv", buffer="C_data", scope="local")
        .reverse_compute_at("spmv_C_data_local", loop="i")
        .decompose_reduction("spmv", loop="j")
        .split("j", factors=(None, LANES))
        .vectorize("j_1")
    )


def spmm():
    """Features in lanes."""
    return (
        loops(SPMM)
        .split("k", factors=(None, LANES))
        .reorder("i", "k_0", "j", "k_1")
        .cache_write("spmm", buffer="C_data", scope="local")
        .reverse_compute_at("spmm_C_data_local", loop="k_0")
        .decompose_reduction("spmm", loop="j")
        .vectorize("k_1")
        .vectorize("k_1_init")
        .vectorize("k_c")
    )


BUILDERS = {"spmv": spmv, "spmm": spmm}


@pytest.fixture
def emulated():
    """Skips the test where kernels cannot be emulated."""
    probe = registry.backend("llvm-sve").probe(Target("llvm-sve"))
    if not probe.usable:
        pytest.skip(probe.reason)


def operands(name, size):
    """Seven rows with `size` features, or with up to `size` elements for SpMV; rows 0, 3 and 6 are empty, and
    row 1 is dense."""
    columns = size if name == "spmv" else 9
    random = np.random.default_rng(size)
    dense = random.integers(-3, 4, (7, columns)).astype(np.float32)
    dense[1], dense[[0, 3, 6]] = 2, 0
    a = sparse.csr_array(dense)
    shape = (columns,) if name == "spmv" else (columns, size)
    b = random.integers(-3, 4, shape).astype(np.float32)
    return a, b, dense @ b


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("bits", [128, 256, 512, 1024, 2048])
@pytest.mark.parametrize("name", BUILDERS)
def test_products_are_right_at_every_vector_length(name, bits):
    builder = BUILDERS[name]()
    target = f"llvm-sve:vector_bits={bits}"
    kernel = gs.compile(builder.program, schedule=builder, target=target)
    lanes = bits // 32
    for size in (0, 1, lanes - 1, lanes, lanes + 1, 37, 115):
        a, b, expected = operands(name, size)
        c = np.full(expected.shape, np.nan, np.float32)
        kernel(a=a.data, b=b, c=c, indptr=a.indptr, indices=a.indices, features=size)
        np.testing.assert_array_equal(c, expected, err_msg=str(size))


@pytest.mark.parametrize(
    ("name", "instructions"),
    [
        ("spmv", (r"whilelo\tp\d+\.s", r"ld1w\t\{ z\d+\.s \}, p\d+/z, \[x\d+, z\d+\.s, [us]xtw #2\]",
                  r"fmla\tz\d+\.s, p\d+/m")),
        ("spmm", (r"whilelo\tp\d+\.s", r"fm(la|ad)\tz\d+\.s, p\d+/m")),
    ],
)  # fmt: skip
def test_the_assembly_has_predicated_vectors_and_no_scalar_remainder(name, instructions):
    builder = BUILDERS[name]()
    schedule = Schedule(loop=builder.trace)
    text = stage_texts(builder.program, schedule=schedule, target="llvm-sve")["asm"]
    for instruction in instructions:
        assert re.search(instruction, text), instruction
    # A scalar loop would multiply and add in scalar registers.
    assert not re.search(r"fmadd\ts|fmul\ts", text)


def test_export_needs_no_emulator(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    builder = spmm()
    files = gs.export(builder.program, tmp_path, schedule=builder, target="llvm-sve")
    assert files.object.read_bytes()[18:20] == (183).to_bytes(2, "little")  # EM_AARCH64


def test_explain_shows_the_schedule_for_a_target():
    report = gs.explain("spmm", target="llvm-sve:cpu=neoverse-v1", specialize={"feat_size": 64})
    assert "8 lanes" in report.decisions[1].what


@pytest.mark.usefixtures("emulated")
def test_run_says_that_it_emulates(tmp_path, capsys):
    path = tmp_path / "a.npz"
    sparse.save_npz(path, sparse.random_array((30, 40), density=0.2, format="csr", dtype="f4"))
    arguments = ["run", "spmm", "--matrix", str(path), "--repeat", "1", "--check"]
    assert main([*arguments, "--features", "20", "--target", "llvm-sve:vector_bits=512"]) == 0
    printed = capsys.readouterr().out
    assert "llvm-sve:vector_bits=512, emulated by qemu-aarch64-static" in printed
    assert "within the rounding" in printed


def test_a_wrong_option_is_an_error():
    with pytest.raises(UserError, match="'rows' is not an option of llvm-sve"):
        gs.compile(spmm().program, target="llvm-sve:rows=4")
