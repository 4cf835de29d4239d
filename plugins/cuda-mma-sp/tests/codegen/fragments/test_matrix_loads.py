"""Fragments of operands in shared memory are loaded by `ldmatrix`, from rows or columns."""

import re

import numpy as np
import pytest
from assembler import assembled
from matrix_load_programs import problem, program
from msgspec.structs import replace

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.device_code import DeviceCode
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module, print_module

INTERPRETER = Target.parse("cuda-mma-sp:driver=interpreter")
TILES = [(16, 8, 16), (16, 8, 8), (32, 24, 16), (16, 40, 48), (32, 8, 64)]


def artifact_of(module):
    return CudaBackend().compile(module, INTERPRETER)


def ptx_of(module):
    return DeviceCode.decode(artifact_of(module).code).ptx


@pytest.mark.parametrize("tile", TILES, ids=str)
@pytest.mark.parametrize("ways", ["", "a", "b", "ab"])
@pytest.mark.parametrize("padding", [0, 1, 8])
def test_lanes_get_the_elements_of_their_registers(tile, ways, padding):
    """Rows that are not aligned are loaded element by element."""
    module, (arguments, expected) = (
        program(tile, ways=ways, padding=padding),
        problem(tile, ways=ways),
    )
    artifact = artifact_of(module)
    assert ("ldmatrix" in DeviceCode.decode(artifact.code).ptx) == (padding != 1)
    CudaBackend().load(artifact)(**arguments)
    np.testing.assert_array_equal(arguments["c"], expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("ways", ["", "ab"])
def test_both_interpreters_agree(dtype, ways):
    module, (arguments, expected) = program(dtype=dtype, ways=ways), problem(dtype=dtype, ways=ways)
    run(module, arguments)
    np.testing.assert_array_equal(arguments["c"], expected)
    arguments["c"][:] = np.nan
    CudaBackend().load(artifact_of(module))(**arguments)
    np.testing.assert_array_equal(arguments["c"], expected)


def instructions(text):
    return sorted(re.findall(r"ldmatrix\.sync\.aligned\.m8n8\.(\w+(?:\.trans)?)\.shared", text))


@pytest.mark.parametrize(
    ("tile", "ways", "expected"),
    [
        ((16, 8, 16), "", ["x2.trans", "x4"]),
        ((16, 8, 16), "ab", ["x2", "x4.trans"]),
        ((16, 8, 8), "", ["x1.trans", "x2"]),
        ((16, 24, 16), "b", ["x2", "x4", "x4"]),
        ((32, 16, 32), "", ["x4"] * 4 + ["x4.trans"] * 2),
    ],
)
def test_an_instruction_loads_four_matrices_if_there_are_as_many(tile, ways, expected):
    assert instructions(ptx_of(program(tile, ways=ways))) == sorted(expected)


@pytest.mark.parametrize(("ways", "loads"), [("", ["x4"]), ("b", ["x2", "x4"]), ("a", [])])
def test_rows_of_eight_bits_are_loaded_if_they_are_not_transposed(ways, loads):
    text = print_module(program((16, 8, 32), ways=ways, padding=16)).replace("float16", "int8")
    module = parse_module(text.replace("float32", "int32").replace("= 0.0", "= 0"))
    assert instructions(ptx_of(module)) == loads
    arguments, expected = problem((16, 8, 32), "int8", ways)
    arguments["c"] = arguments["c"].astype(np.int32)
    CudaBackend().load(artifact_of(module))(**arguments)
    np.testing.assert_array_equal(arguments["c"], expected)


@pytest.mark.parametrize(("ways", "loads"), [("", ["x4"]), ("b", ["x2", "x4"]), ("a", [])])
def test_rows_of_32_bits_are_loaded_if_they_are_not_transposed(ways, loads):
    text = print_module(program((16, 8, 8), ways=ways, padding=4)).replace("float16", "float32")
    text = re.sub(r"(?:T\.float32\()?([XY]\[\w+, \w+\])\)? \*", r"T.tf32(\1) *", text)
    text = re.sub(r"\* (?:T\.float32\()?([XY]\[\w+, \w+\])\)?", r"* T.tf32(\1)", text)
    module = parse_module(text)
    assert instructions(ptx_of(module)) == loads
    arguments, expected = problem((16, 8, 8), "float32", ways)
    CudaBackend().load(artifact_of(module))(**arguments)
    np.testing.assert_array_equal(arguments["c"], expected)


def test_elements_of_which_fewer_bits_are_read_are_loaded_one_by_one():
    text = print_module(program((16, 8, 64), ways="b", padding=16)).replace("float16", "int8")
    text = text.replace("float32", "int32").replace("= 0.0", "= 0")
    text = re.sub(r"T\.int32\(([XY]\[\w+, \w+\])\)", r"T.int32((\1 << 4) >> 4)", text)
    assert "<< 4" in text
    module = parse_module(text)
    assert "m16n8k64" in ptx_of(module)
    assert "ldmatrix" not in ptx_of(module)


def test_a_missing_barrier_before_a_matrix_load_is_a_race():
    artifact = artifact_of(program())
    code = DeviceCode.decode(artifact.code)
    without = re.sub(r"bar\.sync\s+0;", "", code.ptx)
    assert without != code.ptx
    broken = replace(artifact, code=replace(code, ptx=without).encode())
    arguments, _ = problem()
    with pytest.raises(ArgumentError, match="race: a thread reads"):
        CudaBackend().load(broken)(**arguments)


def test_a_wrong_way_is_a_wrong_result():
    artifact = artifact_of(program())
    code = DeviceCode.decode(artifact.code)
    broken = replace(artifact, code=replace(code, ptx=code.ptx.replace(".trans", "")).encode())
    arguments, expected = problem()
    CudaBackend().load(broken)(**arguments)
    assert not np.array_equal(arguments["c"], expected)


@pytest.mark.parametrize("architecture", ["sm_80", "sm_86", "sm_90", "sm_100", "sm_120"])
def test_ptxas_assembles_matrix_loads(architecture, tmp_path):
    target = Target.parse(f"cuda-mma-sp:arch={architecture}")
    for ways in ("", "ab"):
        text = CudaBackend().texts(program((16, 24, 16), ways=ways), target)["ptx"]
        assert "ldmatrix" in text
        report = assembled(text, architecture, tmp_path)
        assert " 0 bytes spill stores, 0 bytes spill loads" in report


def test_matrix_instructions_are_not_printed_as_loops_of_cuda():
    text = CudaBackend().texts(program(), INTERPRETER)["cuda"]
    assert "cannot be written in CUDA C++" in text
