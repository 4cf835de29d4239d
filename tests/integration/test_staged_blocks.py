"""The default schedule of BSR with tensor cores: tiles in shared memory, asynchronous copies, and loads and
products of matrices. Kernels run in the interpreter of PTX; their machine code is counted."""

from __future__ import annotations

import re

import pytest
from disassembler import count_of, opcodes

import gossamer as gs
from gossamer.compilation.pipeline import stage_texts
from gossamer_ir.transform.specialize import specialize
from gossamer_testkit.bsr_product import bsr_product
from tests.integration.block_problems import block_problem

TARGET = "cuda-mma-sp:arch=sm_90,driver=interpreter"


def sizes_of(size):
    return dict(zip(("bh", "bw", "feat"), size, strict=True))


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("float16", (16, 16, 16)),
        ("float16", (16, 48, 64)),
        ("float16", (48, 32, 96)),
        ("int8", (16, 64, 32)),
        ("tfloat32", (16, 24, 16)),
    ],
    ids=str,
)
def test_staged_blocks_are_multiplied(dtype, size):
    sizes = sizes_of(size)
    kernel = gs.compile(bsr_product(dtype), target=TARGET, specialize=sizes)
    for lengths in ((2, 0, 5, 1, 0), (), (0,)):
        block_problem(*size, dtype=dtype, lengths=lengths).require(kernel, sizes=sizes)


def test_blocks_whose_columns_fill_no_instruction_are_not_staged():
    report = gs.explain(bsr_product("int8"), target=TARGET, specialize=sizes_of((16, 16, 16)))
    assert report.decisions[-1].what == "the blocks of a block row by mma_block_product_int8"


def test_the_rule_says_how_blocks_are_staged():
    report = gs.explain(bsr_product("float16"), target=TARGET, specialize=sizes_of((32, 32, 128)))
    assert report.decisions[-1].what == (
        "blocks and tiles of 64 features in shared memory, in a pipeline of 3 stages"
    )


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a", "sm_120"])
@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("float16", (32, 32, 128)),
        ("float16", (64, 64, 64)),
        ("int8", (32, 64, 64)),
        ("tfloat32", (32, 32, 64)),
    ],
    ids=str,
)
def test_machine_code_has_copies_matrix_loads_and_instructions(dtype, size, architecture, tmp_path):
    """No registers are kept in memory, and nothing else multiplies."""
    target = f"cuda-mma-sp:arch={architecture}"
    text = stage_texts(specialize(bsr_product(dtype), sizes_of(size)), target=target)["ptx"]
    counts = opcodes(text, architecture, tmp_path)
    expected = {"cp.async.cg": "LDGSTS", "mma.sync": "IMMA" if dtype == "int8" else "HMMA"}
    # Matrices that `ldmatrix` loads have elements of 16 bits.
    if dtype == "float16":
        expected["ldmatrix"] = "LDSM"
    for instruction, name in expected.items():
        # ptxas may unroll loops.
        assert count_of(counts, name) >= len(re.findall(instruction, text)) > 0
    assert not any(count_of(counts, name) for name in ("LDL", "STL", "FFMA"))
