"""Tiles in fragments: matrix instructions in PTX, and the results of both interpreters."""

import numpy as np
import pytest
from fragment_programs import tile_arrays, tile_program, tile_text

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.device_code import DeviceCode
from gossamer_ir.errors import ArgumentError, UnsupportedError
from gossamer_ir.interchange.records import Target
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module

# Later GPUs emulate the instructions for int4.
INTERPRETER = Target.parse("cuda-mma-sp:arch=sm_89,driver=interpreter")
TILES = [
    # One instruction of each kind.
    {"depth": 16, "left": "float16", "is_sparse": False},
    {"depth": 8, "left": "float16", "is_sparse": False},
    {"depth": 16, "left": "float16", "sums": "float16", "is_sparse": False},
    {"depth": 16, "left": "bfloat16", "is_sparse": False},
    {"depth": 32, "left": "int8", "is_sparse": False},
    {"depth": 16, "left": "uint8", "right": "int8", "is_sparse": False},
    {"depth": 32, "left": "float16", "is_sparse": True},
    {"depth": 16, "left": "float16", "is_sparse": True},
    {"depth": 32, "left": "float16", "sums": "float16", "is_sparse": True},
    {"depth": 32, "left": "bfloat16", "is_sparse": True},
    {"depth": 16, "left": "bfloat16", "is_sparse": True},
    {"depth": 64, "left": "int8", "is_sparse": True},
    {"depth": 32, "left": "uint8", "is_sparse": True},
    {"depth": 64, "left": "int8", "right": "uint8", "is_sparse": True},
    {"depth": 8, "left": "tfloat32", "is_sparse": False},
    {"depth": 4, "left": "tfloat32", "is_sparse": False},
    {"depth": 16, "left": "tfloat32", "is_sparse": True},
    {"depth": 8, "left": "tfloat32", "is_sparse": True},
    {"depth": 64, "left": "int4", "is_sparse": False},
    {"depth": 32, "left": "uint4", "right": "int4", "is_sparse": False},
    {"depth": 128, "left": "int4", "is_sparse": True},
    {"depth": 64, "left": "int4", "right": "uint4", "is_sparse": True},
    # Several instructions.
    {"rows": 32, "columns": 16, "depth": 32, "left": "tfloat32", "is_sparse": True},
    {"rows": 32, "columns": 16, "depth": 256, "left": "uint4", "is_sparse": True},
    {"rows": 32, "columns": 24, "depth": 48, "left": "float16", "is_sparse": False},
    {"rows": 32, "columns": 16, "depth": 96, "left": "float16", "is_sparse": True},
    {"rows": 16, "columns": 16, "depth": 128, "left": "int8", "is_sparse": True},
]


def name_of(tile):
    return "-".join(map(str, tile.values()))


@pytest.mark.parametrize("tile", TILES, ids=name_of)
def test_the_product_of_a_tile_is_that_of_the_lanes(tile):
    module = tile_program(**tile)
    arguments, expected = tile_arrays(np.random.default_rng(0), **tile)
    in_lanes = {name: array.copy() for name, array in arguments.items()}
    backend = CudaBackend()
    artifact = backend.compile(module, INTERPRETER)
    backend.load(artifact)(**in_lanes)
    np.testing.assert_array_equal(in_lanes["c"], expected)
    run(module, arguments)
    np.testing.assert_array_equal(arguments["c"], expected)


@pytest.mark.parametrize("tile", TILES, ids=name_of)
def test_only_matrix_instructions_multiply(tile):
    artifact = CudaBackend().compile(tile_program(**tile), INTERPRETER)
    text = DeviceCode.decode(artifact.code).ptx
    kind = "mma.sp::ordered_metadata.sync" if tile["is_sparse"] else "mma.sync"
    count = tile.get("rows", 16) // 16 * (tile.get("columns", 8) // 8)
    assert text.count(f"{kind}.aligned") % count == 0
    assert text.count(f"{kind}.aligned") > 0
    assert not any(word in text for word in ("fma.", "mul.f", "mul.rn", "mad.lo.s32"))


def test_illegal_metadata_stops_the_kernel():
    tile = {"depth": 32, "left": "float16", "is_sparse": True}
    arguments, _ = tile_arrays(np.random.default_rng(0), **tile)
    arguments["e"][3, 2] = (1, 1)
    backend = CudaBackend()
    kernel = backend.load(backend.compile(tile_program(**tile), INTERPRETER))
    with pytest.raises(ArgumentError, match="the metadata of a matrix instruction is illegal"):
        kernel(**arguments)


def compile_text(text, target="cuda-mma-sp:arch=sm_90"):
    CudaBackend().compile(parse_module(text), Target.parse(target))


@pytest.mark.parametrize(
    ("tile", "target"),
    [
        ({"depth": 24, "is_sparse": True}, "cuda-mma-sp"),
        ({"depth": 32, "rows": 8, "is_sparse": True}, "cuda-mma-sp"),
        ({"depth": 32, "columns": 4, "is_sparse": False}, "cuda-mma-sp"),
        ({"depth": 32, "left": "int8", "sums": "float32", "is_sparse": True}, "cuda-mma-sp"),
        ({"depth": 32, "is_sparse": True}, "cuda-mma-sp:arch=sm_75"),
        ({"depth": 32, "is_sparse": True}, "cuda-mma-sp:arch=sm_80,ptx=7.1"),
    ],
)
def test_tiles_without_an_instruction_are_refused(tile, target):
    with pytest.raises(UnsupportedError) as caught:
        compile_text(tile_text(**tile), target)
    assert caught.value.code == "cuda.fragment.instruction"


DENSE = tile_text(depth=16, is_sparse=False)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (DENSE.replace("X[i_2, p_2]", "X[i_2, 15 - p_2]"), "cuda.fragment.product"),
        (DENSE.replace("C[i_3, j_3] = S[i_3, j_3]", "C[i_3, j_3] = S[i_3, 0]"), "cuda.fragment.access"),
        (DENSE.replace("= A[i_1, p]", "= T.float16(S[i_1, p % 8])"), "cuda.fragment.access"),
        (
            DENSE.replace(
                "X[i_1, p] = A[i_1, p]", "T.store(X, i_1, p, value=A[i_1, p], predicate=p < 4)"
            ),
            "cuda.fragment.access",
        ),
        (DENSE.replace('"blockIdx.x"', '"threadIdx.x"'), "cuda.fragment.threads"),
    ],
)  # fmt: skip
def test_other_uses_of_fragments_are_refused(text, code):
    with pytest.raises(UnsupportedError) as caught:
        compile_text(text)
    assert caught.value.code == code


def test_elements_may_have_conditions_and_ranges():
    text = DENSE.replace(
        "X[i_1, p] = A[i_1, p]", "if p < 5:\n                    X[i_1, p] = A[i_1, p]"
    )
    text = text.replace("for p_1 in T.serial(16)", "for p_1 in T.serial(2, 9)")
    arguments, _ = tile_arrays(np.random.default_rng(0), depth=16, is_sparse=False)
    backend = CudaBackend()
    kernel = backend.load(backend.compile(parse_module(text), INTERPRETER))
    a, b = arguments["a"].astype(int), arguments["b"].astype(int)
    expected = a[:, 2:5] @ b[2:5] + arguments["c"]
    kernel(**arguments)
    np.testing.assert_array_equal(arguments["c"], expected)
