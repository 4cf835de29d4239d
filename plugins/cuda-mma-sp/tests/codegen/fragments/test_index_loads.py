"""Indices of N:M matrices in shared memory are loaded as words, and combined to metadata."""

import re
from collections import Counter

import numpy as np
import pytest

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.device_code import DeviceCode
from gossamer_ir.interchange.records import Target
from gossamer_ir.script import parse_module

INTERPRETER = Target.parse("cuda-mma-sp:driver=interpreter")
PROGRAM = """
@T.prim_func
def f(a: T.handle, e: T.handle, b: T.handle, c: T.handle) -> None:
    T.stage("flat")
    A = T.match_buffer(a, (16, GROUPSINNER), "LEFT")
    E = T.match_buffer(e, (16, STORED), "uint8")
    B = T.match_buffer(b, (DEPTH, 8), "LEFT")
    C = T.match_buffer(c, (16, 8), "SUM")
    for block in T.thread_binding(1, thread="blockIdx.x"):
        W = T.alloc_buffer((16, PITCH), "uint8", scope="shared")
        for t in T.thread_binding(32, thread="threadIdx.x"):
            for r in T.serial(STORED // 2):
                W[(r * 32 + t) // STORED, (r * 32 + t) % STORED] = E[(r * 32 + t) // STORED, (r * 32 + t) % STORED]
        S = T.alloc_buffer((16, 8), "SUM", scope="fragment")
        X = T.alloc_buffer((16, GROUPSINNER), "LEFT", scope="fragment")
        M = T.alloc_buffer((16, GROUPSINNER), "uint8", scope="fragment")
        Y = T.alloc_buffer((DEPTH, 8), "LEFT", scope="fragment")
        for i, j in T.grid(16, 8):
            S[i, j] = C[i, j]
        for i_1, q_1SLOT1 in T.grid(16, GROUPSINNER):
            X[i_1, q_1SLOT1] = A[i_1, q_1SLOT1]
        for i_2, q_2SLOT2 in T.grid(16, GROUPSINNER):
            M[i_2, q_2SLOT2] = W[i_2, COLUMN]
        for k_2, j_2 in T.grid(DEPTH, 8):
            Y[k_2, j_2] = B[k_2, j_2]
        for i_3, q_3SLOT3, j_3 in T.grid(16, GROUPSINNER, 8):
            S[i_3, j_3] = S[i_3, j_3] + LEFT_FACTOR * RIGHT_FACTOR
        for i_4, j_4 in T.grid(16, 8):
            C[i_4, j_4] = S[i_4, j_4]
"""  # noqa: E501  (scripts have no line breaks inside an expression)
SUMS = {"float16": "float32", "int8": "int32", "float32": "float32"}
DEPTHS = {"float16": 32, "int8": 64, "float32": 16}
"""The columns of A of an instruction. Those of float32 are multiplied in TF32, with the pattern 1:2."""


def program(dtype, *, pitch=None, column=None):
    """A product of a tile, whose indices are in shared memory, in rows of so many bytes."""
    units, slots = (2, 1) if dtype == "float32" else (4, 2)
    groups = DEPTHS[dtype] // units
    at = "i_3, q_3SLOT3"
    left, right = f"X[{at}]", f"Y[{units} * q_3 + T.int64(M[{at}]) % {units}, j_3]"
    factor = "T.tf32({})" if dtype == "float32" else "T.SUM({})"
    texts = {
        "LEFT_FACTOR": factor.format(left),
        "RIGHT_FACTOR": factor.format(right),
        "GROUPSINNER": f"{groups}, 2" if slots > 1 else str(groups),
        "COLUMN": column or ("2 * q_2 + s_2" if slots > 1 else "q_2"),
        "STORED": str(groups * slots),
        "PITCH": str(pitch or groups * slots),
        "DEPTH": str(DEPTHS[dtype]),
        "LEFT": dtype,
        "SUM": SUMS[dtype],
        **{f"SLOT{n}": f", s_{n}" if slots > 1 else "" for n in (1, 2, 3)},
    }
    text = PROGRAM
    for name, value in texts.items():
        text = text.replace(name, value)
    return parse_module(text)


def problem(dtype):
    """Arguments of small integers, and the result."""
    units, slots = (2, 1) if dtype == "float32" else (4, 2)
    random, depth = np.random.default_rng(0), DEPTHS[dtype]
    groups = depth // units
    order = random.random((16, groups, units)).argsort(axis=2)
    indices = np.sort(order[..., :slots], axis=2)
    values = random.integers(-4, 5, (16, groups, slots))
    b, c = random.integers(-4, 5, (depth, 8)), random.integers(-9, 9, (16, 8))
    dense = np.zeros((16, groups, units), np.int64)
    np.put_along_axis(dense, indices, values, axis=2)
    arguments = {
        "a": values.reshape((16, groups, 2) if slots > 1 else (16, groups)).astype(dtype),
        "e": indices.reshape(16, -1).astype(np.uint8),
        "b": b.astype(dtype),
        "c": c.astype(SUMS[dtype]),
    }
    return arguments, dense.reshape(16, depth) @ b + c


def loads_of(ptx):
    return Counter(re.findall(r"\bld\.shared\.(\S+)", ptx))


@pytest.mark.parametrize(
    ("dtype", "pitch", "loads"),
    [
        # Two rows of 8 indices, a row of 16, and two rows of 4.
        ("float16", None, {"v2.b32": 2}),
        ("int8", None, {"v4.b32": 1}),
        ("float32", None, {"b32": 2}),
        # Rows that begin at other multiples are loaded in smaller words, or byte by byte.
        ("int8", 40, {"v2.b32": 2}),
        ("float16", 20, {"b32": 4}),
        ("float16", 17, {"b8": 16}),
    ],
)
def test_a_lane_loads_the_indices_of_a_word_at_once(dtype, pitch, loads):
    artifact = CudaBackend().compile(program(dtype, pitch=pitch), INTERPRETER)
    assert loads_of(DeviceCode.decode(artifact.code).ptx) == loads
    arguments, expected = problem(dtype)
    CudaBackend().load(artifact)(**arguments)
    np.testing.assert_array_equal(arguments["c"], expected)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_bits_that_are_no_index_do_not_matter(dtype):
    """A program reads an index modulo the number of units."""
    arguments, expected = problem(dtype)
    units = 2 if dtype == "float32" else 4
    arguments["e"] += units * np.arange(arguments["e"].size, dtype=np.uint8).reshape(16, -1)
    kernel = CudaBackend().load(CudaBackend().compile(program(dtype), INTERPRETER))
    kernel(**arguments)
    np.testing.assert_array_equal(arguments["c"], expected)


def test_indices_in_another_order_are_loaded_byte_by_byte():
    artifact = CudaBackend().compile(program("float16", column="8 * s_2 + q_2"), INTERPRETER)
    assert loads_of(DeviceCode.decode(artifact.code).ptx) == {"b8": 16}
    arguments, expected = problem("float16")
    arguments["e"] = arguments["e"].reshape(16, 8, 2).transpose(0, 2, 1).reshape(16, 16).copy()
    CudaBackend().load(artifact)(**arguments)
    np.testing.assert_array_equal(arguments["c"], expected)
