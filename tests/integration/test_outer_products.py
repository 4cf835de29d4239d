"""Products of BSR by the outer products of Arm SME, emulated at every vector length of streaming mode."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.compilation.pipeline import stage_texts
from gossamer_ir.errors import ScheduleError, UnsupportedError
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module, print_module
from gossamer_lower import lower_to_flat
from gossamer_testkit.bsr_product import bsr_product, bsr_product_script
from tests.fuzzing.execution.compilers import VECTOR_LENGTHS
from tests.integration.block_problems import block_problem

TARGET = "llvm-sve:features=sme"
ORDER = ("io", "jo", "ii", "ji", "k")
SIZES = [(4, 4), (8, 8), (16, 16), (7, 5), (33, 2), (5, 37)]
"""Rows and columns of blocks: those that fill a tile of some vector length, and others."""


def targets():
    """Targets with every vector length of streaming mode, and another one outside of it, for which the rule
    uses the outer products, although they do not pay at 128 bits."""
    for bits in VECTOR_LENGTHS:
        outside = 256 if bits == 128 else 128
        yield bits, f"{TARGET},vector_bits={outside},streaming_bits={bits},min_streaming_bits=256"


def scheduled(program, *, intrinsic="sme_block_product_float32"):
    """A builder whose schedule is written by hand, for the loops as they are in the program."""
    builder = gs.schedule(program, target=TARGET)
    builder.lower()
    builder.lower()
    return builder.reorder(*ORDER).sparse_tensorize("jo", intrinsic=intrinsic).parallel("io")


@pytest.mark.unserialized
@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_blocks_are_right_at_every_streaming_vector_length(size, dtype):
    height, width = size
    for bits, target in targets():
        kernel = gs.compile(bsr_product(dtype), target=target)
        lanes = bits // 32
        for features in sorted({0, 1, lanes - 1, lanes, lanes + 1, 37, 115}):
            block_problem(height, width, features, dtype=dtype).require(kernel)


@pytest.mark.unserialized
@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("lengths", [(), (0,), (0, 0, 4), (1, 0), (0, 6, 0)], ids=str)
def test_block_rows_may_be_empty(lengths):
    sizes = {"bh": 8, "bw": 8, "feat": 20}
    for _, target in targets():
        kernel = gs.compile(bsr_product(**sizes), target=target)
        block_problem(8, 8, 20, lengths=lengths).require(kernel, sizes=sizes)


@pytest.mark.unserialized
@pytest.mark.usefixtures("emulated")
def test_infinite_elements_do_not_spread():
    """Only the elements of a row are multiplied with it, whatever is beside them in a register."""
    for dtype in ("float32", "float16"):
        problem = block_problem(5, 3, 7, dtype=dtype)
        problem.arguments["a"][:, 1] = np.inf
        problem.arguments["b"][..., 2] = np.nan
        kept = np.delete(np.delete(problem.expected, 1, axis=1), 2, axis=2)
        for _, target in targets():
            gs.compile(bsr_product(dtype), target=target)(**problem.arguments)
            result = np.delete(np.delete(problem.arguments["c"], 1, axis=1), 2, axis=2)
            np.testing.assert_allclose(result, kept, rtol=1e-4, atol=1e-4)


@pytest.mark.unserialized
@pytest.mark.usefixtures("emulated")
def test_a_schedule_by_hand_multiplies_blocks_of_any_size():
    for height, width, features in [(4, 4, 12), (1, 3, 5), (2, 9, 40)]:
        problem = block_problem(height, width, features)
        for _, target in targets():
            problem.require(gs.compile(scheduled(bsr_product()), target=target))


@pytest.mark.unserialized
@pytest.mark.usefixtures("emulated")
def test_an_operand_of_scipy_is_multiplied_by_blocks():
    pattern = sparse.random_array((6, 9), density=0.3, format="csr", rng=np.random.default_rng(0))
    random = np.random.default_rng(1)
    values = random.integers(-3, 4, (pattern.nnz, 8, 4)).astype(np.float32)
    matrix = sparse.bsr_array((values, pattern.indices, pattern.indptr), shape=(48, 36))
    b = random.integers(-3, 4, (36, 50)).astype(np.float32)
    for _, target in targets():
        np.testing.assert_array_equal(gs.spmm(matrix, b, target=target), matrix @ b)


def test_the_interpreter_runs_what_is_compiled():
    flat = lower_to_flat(scheduled(bsr_product()).module)
    assert parse_module(print_module(flat)) == flat
    for vscale in (1, 2, 4):
        problem = block_problem(5, 3, 4 * vscale + 1)
        problem.require(lambda vscale=vscale, **arguments: run(flat, arguments, vscale=vscale))


def test_default_schedules_say_why():
    report = gs.explain(bsr_product(bh=8, bw=8), target=TARGET)
    assert report.rule == "tensorized_block_spmm"
    (decision,) = (each for each in report.decisions if "sme_block_product" in each.what)
    assert "blocks have 8 rows" in decision.why
    assert "vectors of 256 bits or more" in decision.why
    for target, sizes in [("llvm-sve", {}), (TARGET, {"bh": 3}), (TARGET, {"feat": 1})]:
        assert gs.explain(bsr_product(**sizes), target=target).rule != "tensorized_block_spmm"
    assert gs.explain(bsr_product("float64"), target=TARGET).rule == "block_spmm"
    for dtype, rule in [("float32", "block_spmm"), ("float16", "tensorized_block_spmm")]:
        report = gs.explain(bsr_product(dtype, bh=8, bw=8), target=f"{TARGET},streaming_bits=128")
        assert report.rule == rule


def test_a_conversion_to_the_same_dtype_is_not_that_of_an_intrinsic():
    text = bsr_product_script("float16").replace('"float16"', '"float32"')
    assert "T.float32(A[io, jo, ii, ji])" in text
    program = parse_module(text)
    assert gs.explain(program, target=TARGET).rule == "block_spmm"
    stage_texts(program, target=TARGET)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_assembly_enters_streaming_mode_once_and_keeps_sums_in_tiles(dtype):
    text = stage_texts(bsr_product(dtype, bh=8, bw=8, feat=128), target=TARGET)["asm"]
    for instruction in ("smstart\tsm", "smstart\tza", "smstop\tza", "smstop\tsm"):
        assert text.count(instruction) == 1, instruction
    # The innermost loop that multiplies: between its label and the branch back.
    loops = re.findall(r"^(\.L\w+):\n((?:\t.*\n)*?\tb\.\w+\t\1\n)", text, re.MULTILINE)
    (body,) = (body for _, body in loops if "fmopa" in body) if dtype == "float32" else (text,)
    assert len(re.findall(r"fmopa\tza[012]\.s", body)) in (3, 6)
    assert not re.search(r"mov\tza[012]h", body) or dtype == "float16"
    # ZA is stored only for a caller that uses it, and never loaded.
    assert len(re.findall(r"str\tza\[", text)) == 1
    assert not re.search(r"ldr\tza\[", text)
    called = re.findall(r"\tbl\t(\S+)", text)
    assert all(re.fullmatch(r"[fh]\d+|run_chunks", name) for name in called), called


REFUSED = [
    ("float64", "sme_block_product_float32", "schedule.sparse_tensorize.match"),
    ("float16", "sme_block_product_float32", "schedule.sparse_tensorize.match"),
    ("float32", "sme_block_product_float64", "schedule.sparse_tensorize.no_intrinsic"),
]


@pytest.mark.parametrize(("dtype", "intrinsic", "code"), REFUSED)
def test_other_dtypes_are_refused(dtype, intrinsic, code):
    with pytest.raises(ScheduleError) as caught:
        scheduled(bsr_product(dtype), intrinsic=intrinsic)
    assert caught.value.code == code


def test_a_target_without_sme_is_refused():
    with pytest.raises(UnsupportedError) as caught:
        gs.compile(scheduled(bsr_product()), target="llvm-sve")
    assert caught.value.code == "llvm.scope.fragment"


def test_a_parallel_loop_over_scalable_vectors_is_refused():
    builder = gs.schedule(bsr_product(), target=TARGET)
    builder.lower()
    builder.lower()
    builder.split("io", factors=(None, "T.vscale()")).reorder("io_0", "io_1", *ORDER[1:])
    builder.sparse_tensorize("jo", intrinsic="sme_block_product_float32").parallel("io_0")
    with pytest.raises(UnsupportedError) as caught:
        gs.compile(builder, target=TARGET)
    assert caught.value.code == "llvm.streaming.call"
