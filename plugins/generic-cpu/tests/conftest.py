"""Flat modules built by hand, shaped as the passes leave them, and a helper that runs them."""

import numpy as np
import pytest

from gossamer_backend.call.threads import reset_num_threads, set_num_threads
from gossamer_generic_cpu.backend import GenericCpu
from gossamer_ir.core.build import add, constant, handle, index, index_var, mul, sub, widen
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Broadcast,
    Buffer,
    Cast,
    Compare,
    For,
    Function,
    Guard,
    LaneReduce,
    Lanes,
    Let,
    Load,
    Module,
    ParallelFor,
    Param,
    Prefetch,
    Ramp,
    Store,
    Var,
)

ROW, J, M, N, NNZ = (index_var(name) for name in ("i", "j", "m", "n", "nnz"))
LOW, HIGH, COLUMN = (index_var(name) for name in ("low", "high", "column"))
SIZES = tuple(Param(name, "int64") for name in ("m", "n", "nnz"))


def csr_buffers(dtype, index_dtype):
    return (
        Buffer("J_indptr", (add(M, index(1)),), index_dtype, "indptr"),
        Buffer("J_indices", (NNZ,), index_dtype, "indices"),
        Buffer("A", (NNZ,), dtype, "a"),
    )


def load_index(buffer, at, index_dtype):
    return widen(Load(buffer, (at,), index_dtype))


def row_bounds(index_dtype):
    return (
        Let(LOW, load_index("J_indptr", ROW, index_dtype)),
        Let(HIGH, load_index("J_indptr", add(ROW, index(1)), index_dtype)),
    )


def parallel_rows(name, row, buffers, *, grain, index_dtype="int32", weighted=True):
    """An entry that runs `row` for each i in [0, m), chunks balanced by nonzeros."""
    handles = tuple(Param(buffer.handle, "handle") for buffer in buffers)
    begin, end = index_var("begin"), index_var("end")
    loop = For("i", begin, sub(end, begin), row)
    inner = Function(
        f"{name}_rows",
        (Param("begin", "int64"), Param("end", "int64"), *handles, *SIZES),
        (loop,),
        buffers=buffers,
    )
    weight = add(load_index("J_indptr", ROW, index_dtype), ROW) if weighted else None
    arguments = (*(handle(param.name) for param in handles), M, N, NNZ)
    call = ParallelFor(inner.name, "i", index(0), M, arguments, weight, index(grain))
    entry = Function(name, (*handles, *SIZES), (call,), buffers=buffers)
    return Module("flat", (entry, inner), name)


def vectors(features, lanes):
    """The start, and the predicate (None: all lanes), of each vector of a row of B."""
    for start in range(0, features, lanes):
        ramp = Ramp(index(start), index(1), Lanes(lanes))
        full = start + lanes <= features
        limit = Broadcast(index(features), Lanes(lanes))
        yield ramp, None if full else Compare("lt", ramp, limit)


def spmm(features, *, lanes=16, dtype="float32", index_dtype="int32", grain=1, guarded=False):
    """C[m, features] = A[m, n] @ B[n, features], accumulators in a local buffer."""
    wide = f"{dtype}x{lanes}"
    zero = Broadcast(constant(0, dtype), Lanes(lanes))
    tiles = tuple(vectors(features, lanes))
    padded = len(tiles) * lanes
    buffers = (
        *csr_buffers(dtype, index_dtype),
        Buffer("B", (N, index(features)), dtype, "b"),
        Buffer("C", (M, index(features)), dtype, "c"),
    )
    at = add(LOW, J)
    scale = Broadcast(Var("scale", dtype), Lanes(lanes))

    def update(ramp, mask):
        row = Load("B", (COLUMN, ramp), wide, mask, zero if mask else None)
        old = Load("acc", (ramp,), wide)
        return Store("acc", (ramp,), Binary("add", old, Binary("mul", scale, row)))

    inner = For("j", index(0), sub(HIGH, LOW), (
        Let(COLUMN, load_index("J_indices", at, index_dtype)),
        *((in_bounds(COLUMN, N, "B"),) if guarded else ()),
        Prefetch("B", (add(COLUMN, index(8)), index(0))),
        Let(Var("scale", dtype), Load("A", (at,), dtype)),
        *(update(ramp, mask) for ramp, mask in tiles),
    ))  # fmt: skip
    row = (
        *row_bounds(index_dtype),
        Allocate(Buffer("acc", (index(padded),), dtype, scope="local")),
        *(Store("acc", (ramp,), zero) for ramp, _ in tiles),
        inner,
        *(Store("C", (ROW, ramp), Load("acc", (ramp,), wide), mask) for ramp, mask in tiles),
    )
    return parallel_rows("spmm", row, buffers, grain=grain, index_dtype=index_dtype)


def in_bounds(value, limit, buffer):
    low = Compare("ge", value, index(0))
    return Guard(Binary("and", low, Compare("lt", value, limit)), buffer)


def spmv(*, lanes=16, dtype="float32", index_dtype="int32", grain=1):
    """y = A @ x, nonzeros of a row in lanes, x gathered, lanes combined at the end of the row."""
    wide = f"{dtype}x{lanes}"
    zero = Broadcast(constant(0, dtype), Lanes(lanes))
    buffers = (
        *csr_buffers(dtype, index_dtype),
        Buffer("X", (N,), dtype, "x"),
        Buffer("Y", (M,), dtype, "y"),
    )
    ramp = Ramp(add(LOW, mul(J, index(lanes))), index(1), Lanes(lanes))
    mask = Compare("lt", ramp, Broadcast(HIGH, Lanes(lanes)))
    nothing = Broadcast(constant(0, index_dtype), Lanes(lanes))
    columns = Load("J_indices", (ramp,), f"{index_dtype}x{lanes}", mask, nothing)
    values = Load("A", (ramp,), wide, mask, zero)
    gathered = Load("X", (widen_lanes(columns, lanes),), wide, mask, zero)
    acc = Load("acc", (Ramp(index(0), index(1), Lanes(lanes)),), wide)
    steps = Binary("floordiv", add(sub(HIGH, LOW), index(lanes - 1)), index(lanes))
    start = Ramp(index(0), index(1), Lanes(lanes))
    row = (
        *row_bounds(index_dtype),
        Allocate(Buffer("acc", (index(lanes),), dtype, scope="local")),
        Store("acc", (start,), zero),
        For("j", index(0), steps, (
            Store("acc", (start,), Binary("add", acc, Binary("mul", values, gathered))),
        )),
        Store("Y", (ROW,), LaneReduce("add", acc)),
    )  # fmt: skip
    return parallel_rows("spmv", row, buffers, grain=grain, index_dtype=index_dtype)


def widen_lanes(expr, lanes):
    wide = f"int64x{lanes}"
    return expr if dtype_of(expr) == wide else Cast(wide, expr)


def random_csr(rows, columns, *, seed=0, longest=9, index_dtype="int32", dtype="float32"):
    """Integer values, so that sums are exact; every third row is empty, one is dense."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(0, longest, rows) if columns else np.zeros(rows, np.int64)
    lengths[::3] = 0
    if rows > 4 and columns:
        lengths[4] = columns
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(index_dtype)
    nnz = int(indptr[-1])
    indices = generator.integers(0, max(columns, 1), nnz).astype(index_dtype)
    values = generator.integers(-8, 9, nnz).astype(dtype)
    return indptr, indices, values


def dense_of(csr, columns):
    indptr, indices, values = csr
    dense = np.zeros((len(indptr) - 1, columns))
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    np.add.at(dense, (rows, indices), values)
    return dense


def build(module, target="generic-cpu"):
    backend = GenericCpu()
    return backend.load(backend.compile(module, Target.parse(target)))


def elementwise(rows, *, inputs, output, lanes=1):
    """OUT[r, i] = rows[r] for each i, where the expressions read X (and Z) at i."""
    extent, at = index_var("n"), index_var("i")
    buffers = tuple(
        Buffer(name, (extent,), dtype, name.lower())
        for name, dtype in zip("XZ", inputs, strict=False)
    )
    out = Buffer("OUT", (index(len(rows)), extent), output, "out")
    if lanes == 1:
        where, steps = at, extent
    else:
        where = Ramp(mul(at, index(lanes)), index(1), Lanes(lanes))
        steps = Binary("floordiv", extent, index(lanes))
    stores = tuple(Store("OUT", (index(r), where), make(where)) for r, make in enumerate(rows))
    params = tuple(Param(buffer.handle, "handle") for buffer in (*buffers, out))
    function = Function(
        "elementwise",
        (*params, Param("n", "int64")),
        (For("i", index(0), steps, stores),),
        buffers=(*buffers, out),
    )
    return Module("flat", (function,), "elementwise")


def serial(body, *, buffers, scalars=()):
    """A module of one function; its handles are the buffers' in order, then the scalars."""
    handles = tuple(Param(buffer.handle, "handle") for buffer in buffers)
    params = (*handles, *(Param(name, dtype) for name, dtype in scalars))
    return Module("flat", (Function("main", params, tuple(body), buffers=tuple(buffers)),), "main")


@pytest.fixture(name="spmm")
def give_spmm():
    return spmm


@pytest.fixture(name="spmv")
def give_spmv():
    return spmv


@pytest.fixture(name="parallel_rows")
def give_parallel_rows():
    return parallel_rows


@pytest.fixture(name="elementwise")
def give_elementwise():
    return elementwise


@pytest.fixture(name="serial")
def give_serial():
    return serial


@pytest.fixture(name="random_csr")
def give_random_csr():
    return random_csr


@pytest.fixture(name="dense_of")
def give_dense_of():
    return dense_of


@pytest.fixture(name="build")
def give_build():
    return build


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Tests share a temporary cache; none uses the user's cache."""
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(autouse=True)
def two_threads():
    set_num_threads(2)
    yield
    reset_num_threads()
