"""Tiles that several warps hold together, in rows and columns of warps: results, instructions, and what is
refused."""

import re

import numpy as np
import pytest
from disassembler import count_of, opcodes
from warp_tile_programs import warp_tile_problem, warp_tile_text

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.device_code import DeviceCode
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interchange.records import Target
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module

TILES = [
    # The rows, columns and terms, the threads, and the rows and columns of warps.
    ((32, 16, 32), 64, (2, 1)),
    ((16, 64, 32), 64, (1, 2)),
    ((48, 8, 96), 96, (3, 1)),
    ((16, 24, 96), 96, (1, 3)),
    ((64, 64, 64), 128, (2, 2)),
    ((64, 128, 32), 256, (2, 4)),
]


def compiled(text, target="cuda-mma-sp:driver=interpreter"):
    return CudaBackend().compile(parse_module(text), Target.parse(target))


def ptx_of(artifact):
    return DeviceCode.decode(artifact.code).ptx


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(("shape", "threads", "warps"), TILES)
def test_each_warp_multiplies_a_part(shape, threads, warps, is_sparse):
    artifact = compiled(warp_tile_text("float16", shape, threads=threads, is_sparse=is_sparse))
    arguments, expected = warp_tile_problem("float16", shape, is_sparse=is_sparse)
    CudaBackend().load(artifact)(**arguments)
    np.testing.assert_array_equal(arguments["c"], expected)
    rows, columns, depth = shape
    parts = rows // (16 * warps[0]), columns // (8 * warps[1]), depth // (32 if is_sparse else 16)
    text = ptx_of(artifact)
    assert len(re.findall(r"\bmma\.", text)) == parts[0] * parts[1] * parts[2]
    # An instruction loads four matrices of A; B has as many for two terms of a column or for one.
    assert text.count("ldmatrix.sync.aligned.m8n8.x4.shared") == parts[0] * parts[2]


@pytest.mark.parametrize("is_sparse", [False, True])
def test_elements_of_eight_bits_are_multiplied_too(is_sparse):
    shape = (32, 32, 128)
    artifact = compiled(warp_tile_text("int8", shape, threads=128, is_sparse=is_sparse))
    arguments, expected = warp_tile_problem("int8", shape, is_sparse=is_sparse)
    CudaBackend().load(artifact)(**arguments)
    np.testing.assert_array_equal(arguments["c"], expected)
    assert "ldmatrix" in ptx_of(artifact)


def test_both_interpreters_agree():
    text = warp_tile_text("float16", (32, 16, 32), threads=64, is_sparse=True)
    arguments, expected = warp_tile_problem("float16", (32, 16, 32), is_sparse=True)
    run(parse_module(text), arguments)
    np.testing.assert_array_equal(arguments["c"], expected)


@pytest.mark.parametrize(
    ("shape", "threads"), [((16, 8, 32), 64), ((48, 24, 32), 128), ((32, 16, 32), 48)]
)
def test_threads_that_cannot_hold_a_tile_are_refused(shape, threads):
    text = warp_tile_text("float16", shape, threads=threads, is_sparse=True)
    with pytest.raises(UnsupportedError, match=f"^{threads} threads along 'threadIdx.x'") as caught:
        compiled(text)
    assert caught.value.code == "cuda.fragment.threads"


def test_kernels_whose_warps_differ_in_number_are_refused():
    text = warp_tile_text("float16", (32, 16, 32), threads=64, is_sparse=False)
    start = text.index("    for block")
    other = text[start:].replace("(64, thread", "(32, thread").replace("// 64", "// 32")
    with pytest.raises(UnsupportedError, match="by 1 warp in one kernel, and by 2 warps in"):
        compiled(text + other)


@pytest.mark.parametrize("architecture", ["sm_80", "sm_86", "sm_89", "sm_90", "sm_120"])
def test_the_machine_code_has_the_instructions(architecture, tmp_path):
    text = ptx_of(
        compiled(
            warp_tile_text("float16", (64, 64, 64), threads=128, is_sparse=True),
            f"cuda-mma-sp:arch={architecture}",
        )
    )
    counts = opcodes(text, architecture, tmp_path)
    assert count_of(counts, "HMMA.SP.16832.F32") == 2 * 4 * 2
    assert count_of(counts, "LDSM") == text.count("ldmatrix")
