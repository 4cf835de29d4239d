"""Programs with scattered rows, on threads that conflict, interpreted and native, against NumPy and SciPy.
The data are small integers, so the order of a sum does not matter.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer
from gossamer.compilation.pipeline import lower_by_stage
from gossamer_backend.call.threads import reset_num_threads, set_num_threads
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Schedule, Step
from gossamer_ir.interchange.serialization import dumps, loads
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Atomic
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import verify

CSC_SPMV = """
@T.prim_func
def csc_spmv(a: T.handle, x: T.handle, y: T.handle, indptr: T.handle, indices: T.handle,
             m: T.int64, n: T.int64, nnz: T.int64) -> None:
    J = T.sp.dense_fixed(n)
    I = T.sp.compressed_varied(J, (m, nnz), (indptr, indices), "int32", sorted=False, unique=False)
    I_detach = T.sp.dense_fixed(m)
    A = T.sp.match_buffer(a, (J, I), "float32")
    X = T.sp.match_buffer(x, (J,), "float32")
    Y = T.sp.match_buffer(y, (I_detach,), "float32")
    with T.sp.iteration([J, I], "RR", "spmv") as [j, i]:
        Y[i] = Y[i] + A[j, i] * X[j]
"""
SEGMENTS = """
@T.prim_func
def segments(keys: T.handle, v: T.handle, y: T.handle,
             n: T.int64, m: T.int64, K: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    KEYS = T.match_buffer(keys, (n,), "int64")
    V = T.match_buffer(v, (n, K), "DTYPE")
    Y = T.match_buffer(y, (m, K), "DTYPE")
    for e in T.serial(n):
        for k in T.serial(K):
            with T.block("sum"):
                ve, vk = T.axis.remap("RS", [e, k])
                Y[KEYS[ve], vk] = COMBINED
"""
HYPERGRAPH = """
@T.prim_func
def back(z: T.handle, y: T.handle, indptr: T.handle, indices: T.handle,
         n: T.int64, m: T.int64, nnz: T.int64, feat: T.int64) -> None:
    J = T.sp.dense_fixed(m)
    I_T = T.sp.compressed_varied(J, (n, nnz), (indptr, indices), "int64")
    I = T.sp.dense_fixed(n)
    F = T.sp.dense_fixed(feat)
    Z = T.sp.match_buffer(z, (J, F), "float64")
    Y = T.sp.match_buffer(y, (I, F), "float64")
    with T.sp.iteration([J, I_T, F], "RRS", "gather") as [j, i, f]:
        Y[i, f] = Y[i, f] + Z[j, f]
"""
COMBINED = {
    "add": "Y[KEYS[ve], vk] + V[ve, vk]",
    "min": "T.min(Y[KEYS[ve], vk], V[ve, vk])",
    "max": "T.max(V[ve, vk], Y[KEYS[ve], vk])",
}
ORACLES = {"add": np.add, "min": np.minimum, "max": np.maximum}


@pytest.fixture(params=[1, 2], autouse=True)
def threads(request):
    set_num_threads(request.param)
    yield
    reset_num_threads()


def atomic(loop, *before, after=(), **arguments):
    """A schedule that makes a loop parallel."""
    shared = {"loop": loop, "accumulate": "atomic", **arguments}
    return Schedule(loop=(*before, Step("parallel", shared), *after))


def vectors_of(loop, lanes):
    inner = f"{loop}_1"
    split = Step("split", {"loop": loop, "factors": (None, lanes)})
    return (split, Step("vectorize", {"loop": inner}))


def require_everywhere(text, schedule, arguments, *, result, expected, interpret=True):
    """Each stage and the kernel add to the passed contents of the result."""
    module = parse_module(text)
    stages = list(lower_by_stage(module, schedule))
    assert any(isinstance(node, Atomic) for node in walk(stages[-1]))
    for stage in stages if interpret else ():
        assert parse_module(print_module(verify(stage))) == loads(dumps(stage)) == stage
        kernel_arguments = arguments | {result: arguments[result].copy()}
        run(stage, kernel_arguments, chunks=2)
        np.testing.assert_array_equal(kernel_arguments[result], expected)
    kernel_arguments = arguments | {result: arguments[result].copy()}
    gossamer.compile(module, schedule=schedule)(**kernel_arguments)
    np.testing.assert_array_equal(kernel_arguments[result], expected)


def matrix(rows, columns, density):
    random = np.random.default_rng(rows + columns)
    random_matrix = sparse.random_array((rows, columns), density=density, format="csc", rng=random)
    random_matrix.data = random.integers(-4, 5, random_matrix.nnz).astype(np.float32)
    random_matrix.indices, random_matrix.indptr = (
        random_matrix.indices.astype(np.int32),
        random_matrix.indptr.astype(np.int32),
    )
    return random_matrix


SHAPES = [(0, 0, 0.0), (3, 0, 0.0), (0, 4, 0.0), (1, 50, 1.0), (30, 1, 1.0), (17, 23, 0.3)]


@pytest.mark.parametrize(("rows", "columns", "density"), [*SHAPES, (5, 30_000, 0.6)])
def test_columns_times_a_vector(rows, columns, density):
    stored = matrix(rows, columns, density)
    x = (np.arange(columns) % 7 - 3).astype(np.float32)
    y = (np.arange(rows) % 5).astype(np.float32)
    arguments = {
        "a": stored.data, "x": x, "y": y, "indptr": stored.indptr, "indices": stored.indices,
        "m": rows, "n": columns, "nnz": stored.nnz,
    }  # fmt: skip
    schedule = atomic("j", weight="T.int64(I_indptr[j]) + 4 * j", grain=16)
    expected = y + (stored @ x if stored.nnz else 0)
    require_everywhere(
        CSC_SPMV, schedule, arguments, result="y", expected=expected, interpret=stored.nnz < 1000
    )


@pytest.mark.parametrize("op", COMBINED)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "float16"])
@pytest.mark.parametrize("lanes", [0, 8])
@pytest.mark.parametrize("count", [0, 1, 40, 20_000])
def test_segments_by_keys_in_no_order(op, dtype, lanes, count):
    random = np.random.default_rng(count)
    keys = random.integers(0, 3, count)
    v = random.integers(-2, 3, (count, 11)).astype(dtype)
    if dtype == "float16":
        v = np.tile(np.array([1, -1], dtype)[:, None], (count // 2 + 1, 11))[:count]
    y = random.integers(-9, 9, (3, 11)).astype(dtype)
    expected = y.copy()
    ORACLES[op].at(expected, keys, v)
    arguments = {"keys": keys, "v": v, "y": y, "n": count, "m": 3, "K": 11}
    text = SEGMENTS.replace("COMBINED", COMBINED[op]).replace("DTYPE", dtype)
    schedule = atomic("e", grain=4, after=vectors_of("k", lanes) if lanes else ())
    require_everywhere(
        text, schedule, arguments, result="y", expected=expected, interpret=count < 100
    )


@pytest.mark.parametrize("after", [(), vectors_of("f", 4)], ids=["features", "vectors"])
@pytest.mark.parametrize("edges", [0, 1, 9, 4000])
def test_vertices_gather_from_their_hyperedges(edges, after):
    random = np.random.default_rng(edges)
    members = [np.sort(random.choice(12, random.integers(0, 9), False)) for _ in range(edges)]
    indptr = np.cumsum([0, *map(len, members)]).astype(np.int64)
    indices = np.concatenate([np.zeros(0, np.int64), *members]).astype(np.int64)
    z = random.integers(-3, 4, (edges, 7)).astype(np.float64)
    y = np.ones((12, 7))
    expected = y.copy()
    np.add.at(expected, indices, np.repeat(z, np.diff(indptr), axis=0))
    arguments = {
        "z": z, "y": y, "indptr": indptr, "indices": indices,
        "n": 12, "m": edges, "nnz": len(indices), "feat": 7,
    }  # fmt: skip
    schedule = atomic("j", grain=2, after=after)
    require_everywhere(
        HYPERGRAPH, schedule, arguments, result="y", expected=expected, interpret=edges < 100
    )


def test_a_key_out_of_range_stops_the_kernel():
    text = SEGMENTS.replace("COMBINED", COMBINED["add"]).replace("DTYPE", "float32")
    kernel = gossamer.compile(text, schedule=atomic("e"))
    y = np.zeros((2, 1), np.float32)
    with pytest.raises(ArgumentError, match="accessed 'Y' out of bounds"):
        kernel(keys=np.array([0, 2]), v=np.ones((2, 1), np.float32), y=y, n=2, m=2, K=1)


def test_an_init_is_set_before():
    text = CSC_SPMV.replace('"RR"', '"RS"').replace(
        "        Y[i] =", "        with T.init():\n            Y[i] = 0.0\n        Y[i] ="
    )
    stored = matrix(6, 9, 0.5)
    x, y = np.arange(9, dtype=np.float32), np.zeros(6, np.float32)
    arguments = {
        "a": stored.data, "x": x, "y": y, "indptr": stored.indptr, "indices": stored.indices,
        "m": 6, "n": 9, "nnz": stored.nnz,
    }  # fmt: skip
    apart = Step("decompose_reduction", {"block": "spmv", "loop": "j"})
    require_everywhere(text, atomic("j", apart), arguments, result="y", expected=stored @ x)
