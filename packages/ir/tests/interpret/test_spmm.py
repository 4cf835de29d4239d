"""CSR SpMM and SpMV at every stage, built by hand from nodes, against NumPy in float64."""

import numpy as np
import pytest

from gossamer_ir.core.build import ONE, ZERO, add, handle, index_var, mul, sub, widen, zero_of
from gossamer_ir.interpret import run
from gossamer_ir.nodes import (
    Binary,
    Block,
    BlockIter,
    Buffer,
    CompressedVaried,
    DenseFixed,
    For,
    Function,
    Iteration,
    Load,
    Module,
    OverAxis,
    ParallelFor,
    Param,
    Range,
    SparseBuffer,
    Store,
)

M, N, K, NNZ = (index_var(name) for name in ("m", "n", "k", "nnz"))
HANDLES = tuple(Param(name, "handle") for name in ("a", "b", "c", "indptr", "indices"))
PARAMS = HANDLES + tuple(Param(name, "int64") for name in ("m", "n", "k", "nnz"))
STAGES = ("coordinate", "position", "loop", "flat")


def axes(index):
    return (
        DenseFixed("I", M),
        CompressedVaried("J", "I", N, NNZ, "indptr", "indices", index, index),
        DenseFixed("J_detach", N),
        DenseFixed("K", K),
    )


def sparse_buffers(dtype, is_matrix):
    dense = ("K",) if is_matrix else ()
    return (
        SparseBuffer("A", ("I", "J"), dtype, "a"),
        SparseBuffer("B", ("J_detach", *dense), dtype, "b"),
        SparseBuffer("C", ("I", *dense), dtype, "c"),
    )


def update(target, left, right):
    return Store(target.buffer, target.indices, Binary("add", target, Binary("mul", left, right)))


def coordinate(dtype, index, is_matrix):
    i, j = index_var("i"), index_var("j")
    last = (index_var("kk"),) if is_matrix else ()
    target = Load("C", (i, *last), dtype)
    body = update(target, Load("A", (i, j), dtype), Load("B", (j, *last), dtype))
    names = ("I", "J", "K")[: 2 + is_matrix]
    iteration = Iteration(
        "csrmm",
        tuple(OverAxis(name) for name in names),
        "SRS"[: len(names)],
        ("i", "j", "kk")[: len(names)],
        (body,),
        (Store("C", (i, *last), zero_of(dtype)),),
    )
    buffers = sparse_buffers(dtype, is_matrix)
    return Function("main", PARAMS, (iteration,), axes(index), buffers)


def nest(dtype, is_matrix, loads):
    """The published nest of one block; `loads` gives indptr[x], A and column of (vi, vj)."""
    indptr, value, column = loads
    vi, vj, vk = (index_var(name) for name in ("vi", "vj", "vk"))
    last = (vk,) if is_matrix else ()
    target = Load("C", (vi, *last), dtype)
    body = update(target, value(vi, vj), Load("B", (column(vi, vj), *last), dtype))

    def length(row):
        return sub(indptr(add(row, ONE)), indptr(row))

    iters = [
        BlockIter("vi", "S", Range(ZERO, M), index_var("i")),
        BlockIter("vj", "R", Range(ZERO, length(vi)), index_var("j")),
    ]
    if is_matrix:
        iters.append(BlockIter("vk", "S", Range(ZERO, K), index_var("kk")))
    init = Store("C", (vi, *last), zero_of(dtype))
    inner = Block("csrmm", tuple(iters), (body,), (init,))
    if is_matrix:
        inner = For("kk", ZERO, K, (inner,))
    return For("i", ZERO, M, (For("j", ZERO, length(index_var("i")), (inner,)),))


def position(dtype, index, is_matrix):
    loads = (
        lambda row: widen(Load("J_indptr", (row,), index)),
        lambda row, place: Load("A", (row, place), dtype),
        lambda row, place: widen(Load("J_indices", (row, place), index)),
    )
    extra = (
        SparseBuffer("J_indptr", ("I",), index, "indptr", extra_storage=1),
        SparseBuffer("J_indices", ("I", "J"), index, "indices"),
    )
    buffers = sparse_buffers(dtype, is_matrix) + extra
    return Function("main", PARAMS, (nest(dtype, is_matrix, loads),), axes(index), buffers)


def loop_buffers(dtype, index, is_matrix):
    dense = (K,) if is_matrix else ()
    return (
        Buffer("A", (NNZ,), dtype, "a"),
        Buffer("B", (N, *dense), dtype, "b"),
        Buffer("C", (M, *dense), dtype, "c"),
        Buffer("J_indptr", (add(M, ONE),), index, "indptr"),
        Buffer("J_indices", (NNZ,), index, "indices"),
    )


def start_of(index):
    return lambda row: widen(Load("J_indptr", (row,), index))


def loop(dtype, index, is_matrix):
    start = start_of(index)
    loads = (
        start,
        lambda row, place: Load("A", (add(start(row), place),), dtype),
        lambda row, place: widen(Load("J_indices", (add(start(row), place),), index)),
    )
    buffers = loop_buffers(dtype, index, is_matrix)
    return Function("main", PARAMS, (nest(dtype, is_matrix, loads),), buffers=buffers)


def flat(dtype, index, is_matrix):
    """An entry whose weighted loop calls a function for chunks of rows."""
    start, i = start_of(index), index_var("i")
    p, last = index_var("p"), (index_var("kk"),) if is_matrix else ()
    target = Load("C", (i, *last), dtype)
    column = widen(Load("J_indices", (p,), index))
    clear = Store("C", (i, *last), zero_of(dtype))
    work = update(target, Load("A", (p,), dtype), Load("B", (column, *last), dtype))
    if is_matrix:
        clear, work = (For("kk", ZERO, K, (step,)) for step in (clear, work))
    rows = For("p", start(i), sub(start(add(i, ONE)), start(i)), (work,))
    buffers = loop_buffers(dtype, index, is_matrix)
    begin, end = index_var("begin"), index_var("end")
    chunk = Function(
        "rows",
        (Param("begin", "int64"), Param("end", "int64"), *PARAMS),
        (For("i", begin, sub(end, begin), (clear, rows)),),
        buffers=buffers,
    )
    arguments = tuple(
        handle(param.name) if param.dtype == "handle" else index_var(param.name) for param in PARAMS
    )
    row = index_var("row")
    call = ParallelFor("rows", "row", ZERO, M, arguments, add(start(row), mul(row, K)), ONE)
    return Function("main", PARAMS, (call,), buffers=buffers), chunk


BUILDERS = {"coordinate": coordinate, "position": position, "loop": loop, "flat": flat}


def build(stage, dtype="float32", index="int32", is_matrix=True):
    functions = BUILDERS[stage](dtype, index, is_matrix)
    functions = functions if isinstance(functions, tuple) else (functions,)
    return Module(stage, functions, "main")


def matrix(lengths, n, rng):
    """A CSR matrix with rows of those lengths and integer values, and the same one dense."""
    indptr = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))).astype(np.int64)
    rows = [np.sort(rng.choice(n, size=length, replace=False)) for length in lengths]
    indices = np.concatenate([np.empty(0, np.int64), *rows]).astype(np.int64)
    values = rng.integers(-4, 5, size=indices.size).astype(np.float64)
    dense = np.zeros((len(lengths), n))
    for row, columns in enumerate(rows):
        dense[row, columns] = values[indptr[row] : indptr[row + 1]]
    return indptr, indices, values, dense


def multiply(stage, lengths, n, k, dtype="float32", index="int32", **options):
    """Runs the program on random integers; returns its result and NumPy's."""
    rng = np.random.default_rng(7)
    indptr, indices, values, dense = matrix(lengths, n, rng)
    shape = () if k is None else (k,)
    b = rng.integers(-4, 5, size=(n, *shape)).astype(dtype)
    c = np.full((len(lengths), *shape), np.nan, dtype)
    arguments = {
        "a": values.astype(dtype), "b": b, "c": c, "indptr": indptr.astype(index),
        "indices": indices.astype(index), "m": len(lengths), "n": n, "k": k or 0,
        "nnz": indices.size,
    }  # fmt: skip
    run(build(stage, dtype, index, is_matrix=k is not None), arguments, **options)
    return c, dense @ b.astype(np.float64)


SHAPES = {
    "mixed": ([2, 0, 5, 1], 7, 3),
    "empty rows at both ends": ([0, 3, 0], 4, 2),
    "one dense row": ([6, 0, 0], 6, 1),
    "no nonzeros": ([0, 0], 3, 2),
    "no rows": ([], 3, 2),
    "no columns": ([0, 0], 0, 2),
    "no features": ([1, 2], 3, 0),
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_spmm_equals_numpy(stage, shape):
    result, expected = multiply(stage, *shape)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_spmv_equals_numpy(stage, shape):
    result, expected = multiply(stage, shape[0], shape[1], None)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("index", ["int32", "int64", "uint16", "uint8"])
def test_spmm_with_every_storage(stage, dtype, index):
    result, expected = multiply(stage, [2, 0, 5, 1], 7, 3, dtype, index)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("chunks", [1, 2, 3, 9])
def test_chunks_do_not_change_the_result(chunks):
    result, expected = multiply("flat", [2, 0, 5, 1], 7, 3, chunks=chunks)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("stage", STAGES)
def test_each_operation_rounds_to_float32(stage):
    """Integers beyond 2^24 show where a sum was kept wider than float32."""
    a = np.array([2.0**24, 1.0, 1.0], np.float32)
    c = np.zeros(1, np.float32)
    arguments = {
        "a": a, "b": np.ones(3, np.float32), "c": c, "indptr": np.array([0, 3], np.int32),
        "indices": np.arange(3, dtype=np.int32), "m": 1, "n": 3, "k": 0, "nnz": 3,
    }  # fmt: skip
    run(build(stage, is_matrix=False), arguments)
    assert c[0] == np.float32(2.0**24)


@pytest.mark.parametrize("stage", STAGES)
def test_nan_and_infinity_reach_only_their_own_rows(stage):
    c = np.zeros(3, np.float64)
    arguments = {
        "a": np.array([np.inf, np.nan, 1.0]), "b": np.array([0.0, 2.0, np.inf]), "c": c,
        "indptr": np.array([0, 1, 2, 3], np.int64), "indices": np.array([1, 1, 1], np.int64),
        "m": 3, "n": 3, "k": 0, "nnz": 3,
    }  # fmt: skip
    run(build(stage, "float64", "int64", is_matrix=False), arguments)
    np.testing.assert_array_equal(c, [np.inf, np.nan, 2.0])
