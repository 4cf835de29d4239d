"""Allocations, gathers and scatters, predicates, bools, and offsets beyond 32 bits."""

import mmap
from pathlib import Path

import numpy as np
import pytest

from gossamer_ir.core.bfloat16 import encode_bfloat16
from gossamer_ir.core.build import ZERO, add, constant, index, index_var, mul
from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Broadcast,
    Buffer,
    Cast,
    Compare,
    For,
    Guard,
    If,
    IfThenElse,
    LaneReduce,
    Lanes,
    Let,
    Load,
    Ramp,
    Store,
    Var,
    While,
)

ROW, N = index_var("i"), index_var("n")
X = Buffer("X", (N,), "float32", "x")
Y = Buffer("Y", (N,), "float32", "y")
P = Buffer("P", (N,), "int64", "p")
FLAGS = Buffer("FLAGS", (N,), "bool", "flags")
SIZE = [("n", "int64")]
WIDE = Lanes(16)
RUN = Ramp(mul(ROW, index(16)), index(1), WIDE)
BLOCKS = Binary("floordiv", add(N, index(15)), index(16))
IN_N = Compare("lt", RUN, Broadcast(N, WIDE))
NOTHING = Broadcast(constant(-1, "float32"), WIDE)


def each(*body, extent=N):
    return [For("i", ZERO, extent, body)]


def at(buffer, where=ROW, dtype="float32"):
    return Load(buffer, (where,), dtype)


def address_space():
    """The number of bytes that this process has mapped."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * mmap.PAGESIZE


def test_run_time_sized_buffer_is_zero_and_freed(build, serial):
    """The allocation is in a loop: together, the buffers need two gigabytes."""
    t = Buffer("T", (N, index(1000)), "float32")
    body = each(
        Allocate(t),
        Store("T", (ZERO, index(999)), Binary("add", Load("T", (ZERO, index(999)), "float32"),
                                              at("X"))),
        Store("Y", (ROW,), Load("T", (ZERO, index(999)), "float32")),
    )  # fmt: skip
    kernel = build(serial(body, buffers=(X, Y), scalars=SIZE))
    x, y = np.arange(700, dtype=np.float32), np.zeros(700, np.float32)
    before = address_space()
    kernel(x=x, y=y)
    assert address_space() - before < 2**28
    assert np.array_equal(x, y)


@pytest.mark.parametrize("lane", [0, 1, 3])
@pytest.mark.parametrize(
    ("wide", "narrow"),
    [("int32", "int16"), ("int64", "int32"), ("float32", "bfloat16"), ("int16", "int8")],
)
def test_a_narrow_store_of_one_lane_keeps_the_next_element(build, serial, wide, narrow, lane):
    lanes = Lanes(8)
    run = Ramp(ZERO, index(1), lanes)
    mask = Compare("eq", run, Broadcast(index(lane), lanes))
    source, target = Buffer("S", (index(8),), wide, "s"), Buffer("T", (index(9),), narrow, "t")
    value = Cast(f"{narrow}x8", Load("S", (run,), f"{wide}x8"))
    kernel = build(serial([Store("T", (run,), value, mask)], buffers=(source, target), scalars=[]))
    s, t = np.full(8, -1, wide), np.ones(9, "uint16" if narrow == "bfloat16" else narrow)
    kernel(s=s, t=t)
    assert np.flatnonzero(t != 1).tolist() == [lane]
    assert t[lane] == (encode_bfloat16(s[:1])[0] if narrow == "bfloat16" else -1)


@pytest.mark.parametrize("size", [2**62, 2**61])
def test_too_large_a_buffer_is_a_memory_error(build, serial, size):
    t = Buffer("T", (index_var("k"), index(5)), "float64")
    body = [Allocate(t), Store("T", (ZERO, ZERO), constant(1, "float64")),
            Store("X", (ZERO,), constant(1, "float32"))]  # fmt: skip
    kernel = build(serial(body, buffers=(X,), scalars=[*SIZE, ("k", "int64")]))
    x = np.zeros(1, np.float32)
    with pytest.raises(MemoryError):
        kernel(x=x, n=1, k=size)
    kernel(x=x, n=1, k=3)
    assert x[0] == 1


def test_memory_is_freed_when_a_guard_fails(build, serial):
    t = Buffer("T", (index(50_000_000),), "float32")
    body = [Allocate(t), Store("T", (N,), constant(1, "float32")),
            Guard(Compare("gt", N, index(1)), "X"), Store("X", (ZERO,), constant(1, "float32"))]  # fmt: skip
    kernel = build(serial(body, buffers=(X,), scalars=SIZE))
    for _ in range(100):
        with pytest.raises(ArgumentError, match="X"):
            kernel(x=np.zeros(1, np.float32), n=1)


def test_new_local_buffer_is_zero_in_every_iteration(build, serial):
    t = Buffer("T", (index(3),), "float32", scope="local")
    body = each(
        Allocate(t),
        Store("T", (ZERO,), Binary("add", at("T", ZERO), at("X"))),
        Store("Y", (ROW,), Binary("add", at("T", ZERO), at("T", index(2)))),
    )
    x, y = np.arange(9, dtype=np.float32), np.zeros(9, np.float32)
    build(serial(body, buffers=(X, Y), scalars=SIZE))(x=x, y=y)
    assert np.array_equal(x, y)


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 100])
def test_gather_and_scatter_with_tails(build, serial, count):
    zero = Broadcast(index(0), WIDE)
    where = Load("P", (RUN,), "int64x16", IN_N, zero)
    gathered = Load("X", (where,), "float32x16", IN_N, NOTHING)
    gather = each(Store("Y", (RUN,), gathered, IN_N), extent=BLOCKS)
    masked = Load("X", (RUN,), "float32x16", IN_N, NOTHING)
    scatter = each(Store("Y", (where,), masked, IN_N), extent=BLOCKS)
    x = np.arange(count, dtype=np.float32)
    p = np.random.default_rng(0).permutation(count)
    for body, expected in ((gather, x[p]), (scatter, np.argsort(p).astype(np.float32))):
        y = np.full(count, -5, np.float32)
        build(serial(body, buffers=(X, Y, P), scalars=SIZE))(x=x, y=y, p=p)
        assert np.array_equal(y, expected)


def test_strided_access(build, serial):
    every_third = Ramp(mul(ROW, index(48)), index(3), WIDE)
    body = each(Store("Y", (RUN,), Load("X", (every_third,), "float32x16")), extent=index(2))
    x, y = np.arange(96, dtype=np.float32), np.zeros(96, np.float32)
    build(serial(body, buffers=(X, Y), scalars=SIZE))(x=x, y=y)
    assert np.array_equal(y, [*range(0, 96, 3), *[0] * 64])


def test_lane_mask_at_the_limits_of_int64(build, serial):
    """The bound minus the base does not fit 64 bits."""
    base, bound = index_var("base"), index_var("bound")
    mask = Compare("lt", Ramp(base, index(1), WIDE), Broadcast(bound, WIDE))
    run = Ramp(ZERO, index(1), WIDE)
    body = [Store("Y", (run,), Broadcast(constant(1, "float32"), WIDE), mask)]
    scalars = [*SIZE, ("base", "int64"), ("bound", "int64")]
    kernel = build(serial(body, buffers=(Y,), scalars=scalars))
    top = 2**63 - 1
    cases = [(0, 0, 0), (0, 5, 5), (0, 99, 16), (7, 9, 2), (9, 7, 0), (-top, top, 16),
             (top - 20, -top, 0), (-3, 0, 3)]  # fmt: skip
    for low, high, expected in cases:
        y = np.zeros(16, np.float32)
        kernel(y=y, base=low, bound=high)
        assert y.tolist() == [1] * expected + [0] * (16 - expected)


@pytest.mark.parametrize("limit", [-(2**31), -1, 0, 1, 16, 39, 64, 2**31 - 1])
def test_lane_mask_below_a_limit_of_32_bits(build, serial, limit):
    bound = Cast("int64", Load("K", (ZERO,), "int32"))
    mask = Compare("lt", RUN, Broadcast(bound, WIDE))
    store = Store("Y", (RUN,), Broadcast(constant(1, "float32"), WIDE), mask)
    limits = Buffer("K", (index(1),), "int32", "k")
    kernel = build(serial(each(store, extent=index(4)), buffers=(Y, limits), scalars=SIZE))
    y = np.zeros(64, np.float32)
    kernel(y=y, k=np.array([limit], np.int32), n=64)
    assert np.count_nonzero(y) == np.count_nonzero(y[: max(limit, 0)]) == min(64, max(limit, 0))


def test_scalar_predicates_guard_the_access(build, serial):
    """P holds positions far outside X where the flag is false."""
    flag = Load("FLAGS", (ROW,), "bool")
    value = Load("X", (Load("P", (ROW,), "int64"),), "float32", flag, constant(-1, "float32"))
    body = each(
        Let(Var("v", "float32"), value),
        Store("Y", (Load("P", (ROW,), "int64"),), Var("v", "float32"), flag),
    )
    flags = np.array([1, 0, 1, 0], bool)
    p = np.array([3, 2**50, 0, -(2**50)])
    x, y = np.arange(4, dtype=np.float32), np.full(4, 9, np.float32)
    build(serial(body, buffers=(X, Y, P, FLAGS), scalars=SIZE))(x=x, y=y, p=p, flags=flags)
    assert y.tolist() == [0, 9, 9, 3]


def test_any_byte_but_zero_is_true(build, serial):
    body = each(Store("X", (ROW,), IfThenElse(Load("FLAGS", (ROW,), "bool"), constant(1, "float32"),
                                            constant(0, "float32"))))  # fmt: skip
    x = np.full(4, 9, np.float32)
    flags = np.array([0, 1, 2, 255], np.uint8).view(bool)
    build(serial(body, buffers=(X, FLAGS), scalars=SIZE))(x=x, flags=flags)
    assert x.tolist() == [0, 1, 1, 1]


def test_only_the_chosen_side_is_evaluated(build, serial):
    far = Load("X", (index(2**50),), "float32")
    body = each(Store("Y", (ROW,), IfThenElse(Compare("lt", ROW, N), at("X"), far)))
    x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    build(serial(body, buffers=(X, Y), scalars=SIZE))(x=x, y=y)
    assert np.array_equal(x, y)


def test_while_and_if(build, serial):
    """Collatz steps of X[i], counted in Y[i]."""
    value = Load("P", (ROW,), "int64")
    is_even = Compare("eq", Binary("floormod", value, index(2)), ZERO)
    count = Store("Y", (ROW,), Binary("add", at("Y"), constant(1, "float32")))
    halve = Store("P", (ROW,), Binary("floordiv", value, index(2)))
    triple = Store("P", (ROW,), add(mul(value, index(3)), index(1)))
    body = each(While(Compare("gt", value, index(1)), (If(is_even, (halve,), (triple,)), count)))
    y = np.zeros(4, np.float32)
    build(serial(body, buffers=(Y, P), scalars=SIZE))(y=y, p=np.array([1, 6, 7, 27]))
    assert y.tolist() == [0, 8, 16, 111]


@pytest.mark.parametrize(
    ("operation", "expected"), [("add", 8), ("mul", 0), ("min", -5), ("max", 6)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_lane_reductions(build, serial, operation, expected, dtype):
    x, y = (Buffer(b, (N,), dtype, b.lower()) for b in "XY")
    run = Ramp(ZERO, index(1), Lanes(8))
    reduced = LaneReduce(operation, Load("X", (run,), f"{dtype}x8"))
    out = np.zeros(8, dtype)
    build(serial([Store("Y", (ZERO,), reduced)], buffers=(x, y), scalars=SIZE))(
        x=np.array([1, 2, 3, 0, -5, 6, 0, 1], dtype), y=out
    )
    assert out[0] == expected


def test_lane_minimum_propagates_nan(build, serial):
    run = Ramp(ZERO, index(1), Lanes(4))
    reduced = LaneReduce("min", Load("X", (run,), "float32x4"))
    x = np.array([1, np.nan, -np.inf, 0], np.float32)
    y = np.zeros(4, np.float32)
    build(serial([Store("Y", (ZERO,), reduced)], buffers=(X, Y), scalars=SIZE))(x=x, y=y)
    assert np.isnan(y[0])


def test_last_rows_beyond_32_bits(spmm, build):
    """B has more than 2^31 elements; only its first and last rows are accessed."""
    rows, features = 2**31 // 128 + 10, 128
    memory = mmap.mmap(-1, rows * features * 4, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
                       | getattr(mmap, "MAP_NORESERVE", 0))  # fmt: skip
    dense = np.frombuffer(memory, np.float32).reshape(rows, features)
    dense[-1], dense[0] = np.arange(128), 1
    result = np.zeros((3, features), np.float32)
    indptr = np.array([0, 1, 1, 3], np.int32)
    build(spmm(features, guarded=True))(
        indptr, np.array([rows - 1, 0, rows - 1], np.int32), np.array([2, 1, 3], np.float32),
        dense, result,
    )  # fmt: skip
    assert np.array_equal(result, [2 * np.arange(128), np.zeros(128), 1 + 3 * np.arange(128)])
