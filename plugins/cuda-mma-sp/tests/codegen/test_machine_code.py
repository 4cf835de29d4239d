"""Machine code of kernels with matrix instructions: the expected instructions, none emulated, no spills.

That ptxas accepts a text shows little: it replaces some instructions by long sequences without a word.
"""

import re

import pytest
from disassembler import ARCHITECTURES, assembled_without_spills, count_of, opcodes
from fragment_programs import tile_program

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.device_code import DeviceCode
from gossamer_cuda_mma_sp.intrinsics.n_m_intrinsics import n_m_intrinsic
from gossamer_cuda_mma_sp.intrinsics.product_intrinsics import PRODUCT_INTRINSICS
from gossamer_cuda_mma_sp.target.gpu import gpu_of
from gossamer_ir.interchange.records import Target
from gossamer_ir.script import parse_module
from gossamer_lower import lower_to_flat

TILES = {
    "2:4 float16": ({"depth": 32, "left": "float16", "is_sparse": True}, "HMMA.SP.16832.F32"),
    "2:4 bfloat16": (
        {"depth": 32, "left": "bfloat16", "is_sparse": True},
        "HMMA.SP.16832.F32.BF16",
    ),
    "2:4 int8": ({"depth": 64, "left": "int8", "is_sparse": True}, "IMMA.SP.16864.S8.S8"),
    "2:4 float16, 6 tiles": (
        {"rows": 32, "columns": 24, "depth": 64, "left": "float16", "is_sparse": True},
        "HMMA.SP.16832.F32",
    ),
    "dense float16": ({"depth": 16, "left": "float16", "is_sparse": False}, "HMMA.16816.F32"),
    "dense bfloat16": (
        {"depth": 16, "left": "bfloat16", "is_sparse": False},
        "HMMA.16816.F32.BF16",
    ),
    "dense int8": ({"depth": 32, "left": "int8", "is_sparse": False}, "IMMA.16832.S8.S8"),
}
COPIES = {"cp.async.c": "LDGSTS", "ldmatrix.": "LDSM"}
"""Instructions of PTX by the start of their names, and what they are in machine code."""
SPARSE_PRODUCTS = {
    each.operands: each for each in PRODUCT_INTRINSICS if each.is_sparse and not each.stages
}
STAGED_PRODUCTS = {each.operands: each for each in PRODUCT_INTRINSICS if each.is_staged}
WARPGROUP_PRODUCTS = {
    (each.operands, each.features): each for each in PRODUCT_INTRINSICS if each.is_of_warpgroup
}
FORMS = ("float16", "tfloat32", "int8", "float8_e4m3", "int4")
"""A dtype for each size of elements and pattern; others have the same code but for names of instructions."""
DISASSEMBLED = ("sm_80", "sm_89", "sm_90a", "sm_120")
"""The architectures whose machine code is read; on others, ptxas says that there are no spills."""
KINDS = {"float8_e4m3": "QMMA.SP", "int8": "IMMA.SP", "int4": "IMMA.SP"}
"""The machine instructions of those that have others than "HMMA.SP"."""


def ptx(module, architecture):
    target = Target.parse(f"cuda-mma-sp:arch={architecture}")
    return DeviceCode.decode(CudaBackend().compile(module, target).code).ptx


def require_instructions(text, architecture, folder):
    """Count the instructions of a text's machine code. It has each asynchronous copy and each load of
    matrices of the text, and no access to local memory."""
    counts = opcodes(text, architecture, folder)
    for start, name in COPIES.items():
        expected = len(re.findall(rf"\b{re.escape(start)}", text))
        assert count_of(counts, name) == expected, f"{expected} {start}"
    assert not count_of(counts, "LDL")
    assert not count_of(counts, "STL")
    return counts


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", TILES)
def test_each_matrix_instruction_is_one_of_the_hardware(name, architecture, tmp_path):
    tile, opcode = TILES[name]
    text = ptx(tile_program(**tile), architecture)
    counts = require_instructions(text, architecture, tmp_path)
    # Exactly as many as in the text, and no other ones: nothing is emulated.
    expected = len(re.findall(r"\bmma\.", text))
    assert count_of(counts, opcode) == expected > 0
    assert sum(count_of(counts, kind) for kind in ("HMMA", "IMMA", "QMMA", "DMMA")) == expected


def sparse_products(architectures):
    """Return the pairs of an architecture and a dtype that it multiplies without emulation."""
    gpus = {name: gpu_of(Target.parse(f"cuda-mma-sp:arch={name}")) for name in architectures}
    return [
        (architecture, dtype)
        for architecture, gpu in gpus.items()
        for dtype in FORMS
        if SPARSE_PRODUCTS[dtype].is_on(gpu)
    ]


def product_kernel(dtype, architecture, products=SPARSE_PRODUCTS):
    """The PTX of a whole product with a 2:4 matrix, for any sizes."""
    return intrinsic_ptx(products[dtype], architecture)


def intrinsic_ptx(intrinsic, architecture):
    module = parse_module(n_m_intrinsic(intrinsic).implementation)
    return ptx(lower_to_flat(module), architecture)


@pytest.mark.parametrize(
    ("architecture", "dtype"),
    sparse_products([each for each in ARCHITECTURES if each not in DISASSEMBLED]),
)
def test_a_product_with_a_2_4_matrix_has_no_spills(architecture, dtype, tmp_path):
    assembled_without_spills(product_kernel(dtype, architecture), architecture, tmp_path)


@pytest.mark.parametrize(("architecture", "dtype"), sparse_products(DISASSEMBLED))
def test_a_product_with_a_2_4_matrix_uses_sparse_tensor_cores(architecture, dtype, tmp_path):
    text = product_kernel(dtype, architecture)
    counts = require_instructions(text, architecture, tmp_path)
    # ptxas may unroll the loop over the depth.
    assert (
        count_of(counts, KINDS.get(dtype, "HMMA.SP")) >= text.count("mma.sp::ordered_metadata") > 0
    )
    assert not any(count_of(counts, other) for other in ("FFMA", "HFMA2.MMA", "DFMA"))


@pytest.mark.parametrize(
    ("dtype", "architecture"),
    [
        # The code of bfloat16 is the same but for names of instructions.
        ("bfloat16", "sm_80"),
        *(("float16", each) for each in ("sm_86", "sm_89", "sm_90", "sm_120")),
    ],
)
def test_a_staged_product_copies_while_it_multiplies(dtype, architecture, tmp_path):
    text = product_kernel(dtype, architecture, STAGED_PRODUCTS)
    counts = opcodes(text, architecture, tmp_path)
    # ptxas may merge copies of two branches.
    assert text.count("cp.async.c") >= count_of(counts, "LDGSTS") >= 2 + 1 + 4
    assert not count_of(counts, "LDL")
    assert not count_of(counts, "STL")
    assert count_of(counts, "LDSM") == text.count("ldmatrix")
    # Indices are loaded as words of 8: those of 4 tiles of rows, two steps, and two rows of a lane.
    assert text.count("ld.shared.v2.b32") == 4 * 2 * 2
    assert "ld.shared.b8" not in text
    assert not count_of(counts, "LDS.U8")
    # Each of eight warps has 4 by 4 tiles, and two steps along the depth.
    assert count_of(counts, "HMMA.SP") == text.count("mma.sp::ordered_metadata") == 4 * 4 * 2
    # A and B of these are loaded by four matrices each.
    assert text.count("ldmatrix.sync.aligned.m8n8.x4.shared") == 4 * 2
    assert text.count("ldmatrix.sync.aligned.m8n8.x4.trans.shared") == 4 * 2
    # One barrier for each step, and one before the first sums.
    assert count_of(counts, "BAR") == text.count("bar.sync") == 1
    assert not any(count_of(counts, other) for other in ("FFMA", "HFMA2.MMA", "DFMA"))


@pytest.mark.parametrize("architecture", ["sm_86", "sm_90"])
def test_a_staged_product_in_tf32_copies_elements_unchanged(architecture, tmp_path):
    """Instructions round what they multiply."""
    text = product_kernel("tfloat32", architecture, STAGED_PRODUCTS)
    counts = opcodes(text, architecture, tmp_path)
    assert text.count("cp.async.c") >= count_of(counts, "LDGSTS") >= 2 + 1 + 4
    assert count_of(counts, "HMMA.SP.16816.F32.TF32") == 4 * 4 * 2
    # A has 16 registers in each of two steps, four of an instruction, and B as many, one by one. Two rows of
    # four indices are in a word of metadata.
    assert count_of(counts, "LDSM") == text.count("ldmatrix.sync.aligned.m8n8.x4.shared") == 8
    assert text.count("ld.shared.b32") == 2 * 16 + 2 * 4 * 2
    assert text.count("cvt.rna.tf32.f32") == 2 * (16 + 16)


@pytest.mark.parametrize("features", [64, 128, 256])
@pytest.mark.parametrize(
    ("dtype", "opcode"),
    [
        ("float16", "HGMMA.SP"),
        ("tfloat32", "HGMMA.SP"),
        ("int8", "IGMMA.SP"),
        ("float8_e4m3", "QGMMA.SP"),
    ],
)
def test_a_product_of_warpgroups_uses_their_sparse_tensor_cores(dtype, opcode, features, tmp_path):
    if (dtype, features) not in WARPGROUP_PRODUCTS:
        assert (dtype, features) == ("tfloat32", 256)
        return
    text = intrinsic_ptx(WARPGROUP_PRODUCTS[dtype, features], "sm_90a")
    counts = opcodes(text, "sm_90a", tmp_path)
    steps = 4 if dtype == "tfloat32" else 2
    assert count_of(counts, opcode) == text.count("wgmma.mma_async.sp") == steps
    # Each step along the depth has one barrier, and waits for the product of the step before.
    assert count_of(counts, "BAR") == count_of(counts, "WARPGROUP.ARRIVE") == 1
    assert count_of(counts, "WARPGROUP.DEPBAR") == 2
    # Copies of A, of its indices, and of rows of B are asynchronous.
    # LLVM does not unroll the copies of eight rows.
    b_copies = min(features // 32, 4) if dtype == "float16" else 0
    a_copies = 0 if dtype == "tfloat32" else 2
    assert count_of(counts, "LDGSTS") >= a_copies + b_copies + 1
    assert not any(count_of(counts, other) for other in ("FFMA", "HFMA2.MMA", "DFMA"))
