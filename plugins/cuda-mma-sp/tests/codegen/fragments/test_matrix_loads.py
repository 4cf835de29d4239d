"""Fragments of operands in shared memory are loaded by `ldmatrix`, from rows or columns."""

import re

import numpy as np
import pytest
from assembler import assembled
from fragment_programs import stored
from msgspec.structs import replace

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.device_code import DeviceCode
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module, print_module

INTERPRETER = Target.parse("cuda-mma-sp:driver=interpreter")
TEXT = """
@T.prim_func
def f(a: T.handle, b: T.handle, c: T.handle) -> None:
    T.stage("flat")
    A = T.match_buffer(a, (A_ROWS, A_COLUMNS), "DTYPE")
    B = T.match_buffer(b, (B_ROWS, B_COLUMNS), "DTYPE")
    C = T.match_buffer(c, (ROWS, COLUMNS), "float32")
    for block in T.thread_binding(1, thread="blockIdx.x"):
        SA = T.alloc_buffer((2, A_ROWS, A_COLUMNS + PADDING), "DTYPE", scope="shared")
        SB = T.alloc_buffer((B_ROWS, B_COLUMNS + PADDING), "DTYPE", scope="shared")
        for t in T.thread_binding(32, thread="threadIdx.x"):
            for e in T.serial(A_ROWS * A_COLUMNS // 32):
                SA[1, (e * 32 + t) // A_COLUMNS, (e * 32 + t) % A_COLUMNS] = A[(e * 32 + t) // A_COLUMNS, (e * 32 + t) % A_COLUMNS]
        for t_1 in T.thread_binding(32, thread="threadIdx.x"):
            for e_1 in T.serial(B_ROWS * B_COLUMNS // 32):
                SB[(e_1 * 32 + t_1) // B_COLUMNS, (e_1 * 32 + t_1) % B_COLUMNS] = B[(e_1 * 32 + t_1) // B_COLUMNS, (e_1 * 32 + t_1) % B_COLUMNS]
        S = T.alloc_buffer((ROWS, COLUMNS), "float32", scope="fragment")
        X = T.alloc_buffer((ROWS, DEPTH), "DTYPE", scope="fragment")
        Y = T.alloc_buffer((DEPTH, COLUMNS), "DTYPE", scope="fragment")
        for i in T.serial(ROWS):
            for j in T.serial(COLUMNS):
                S[i, j] = 0.0
        for i_1 in T.serial(ROWS):
            for p in T.serial(DEPTH):
                X[i_1, p] = SA[1, A_AT]
        for p_1 in T.serial(DEPTH):
            for j_1 in T.serial(COLUMNS):
                Y[p_1, j_1] = SB[B_AT]
        for i_2 in T.serial(ROWS):
            for p_2 in T.serial(DEPTH):
                for j_2 in T.serial(COLUMNS):
                    S[i_2, j_2] = S[i_2, j_2] + T.float32(X[i_2, p_2]) * T.float32(Y[p_2, j_2])
        for i_3 in T.serial(ROWS):
            for j_3 in T.serial(COLUMNS):
                C[i_3, j_3] = S[i_3, j_3]
"""  # noqa: E501  (scripts have no line breaks inside an expression)
TILES = [(16, 8, 16), (16, 8, 8), (32, 24, 16), (16, 40, 48), (32, 8, 64)]


def program(tile=(16, 8, 16), dtype="float16", ways="", padding=8):
    """A product of operands in shared memory; `ways` names those that are transposed there."""
    rows, columns, depth = tile
    a_shape, b_shape = (rows, depth), (depth, columns)
    if "a" in ways:
        a_shape = a_shape[::-1]
    if "b" in ways:
        b_shape = b_shape[::-1]
    text = TEXT.replace("A_AT", "p, i_1" if "a" in ways else "i_1, p")
    text = text.replace("B_AT", "j_1, p_1" if "b" in ways else "p_1, j_1")
    sizes = {
        "A_ROWS": a_shape[0], "A_COLUMNS": a_shape[1], "B_ROWS": b_shape[0],
        "B_COLUMNS": b_shape[1], "ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "DTYPE": dtype,
        "PADDING": padding,
    }  # fmt: skip
    for name, value in sizes.items():
        text = text.replace(name, str(value))
    return parse_module(text)


def problem(tile=(16, 8, 16), dtype="float16", ways=""):
    rows, columns, depth = tile
    random = np.random.default_rng(rows + columns + depth)
    a, b = random.integers(-4, 5, (rows, depth)), random.integers(-4, 5, (depth, columns))
    arrays = {"a": a.T if "a" in ways else a, "b": b.T if "b" in ways else b}
    arguments = {name: np.ascontiguousarray(stored(array, dtype)) for name, array in arrays.items()}
    return {**arguments, "c": np.zeros((rows, columns), np.float32)}, a @ b


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


def test_elements_of_eight_bits_are_loaded_one_by_one():
    text = print_module(program((16, 8, 32))).replace("float16", "int8").replace("float32", "int32")
    text = text.replace("= 0.0", "= 0")
    assert "ldmatrix" not in ptx_of(parse_module(text))


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
