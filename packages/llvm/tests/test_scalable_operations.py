"""LLVM compiles every operation on scalable vectors that the emitter accepts, without a call of a library.
Where it could not, it would end the process."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from gossamer_ir.analysis.lane_projection import lanes_of
from gossamer_ir.core.build import ZERO, constant, index, index_var, mul, zero_of
from gossamer_ir.core.dtypes import SCALARS, DType, vscale_factor
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.math_functions import FUNCTIONS, INSTRUCTIONS
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Binary,
    BinaryOp,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    CompareOp,
    For,
    LaneReduce,
    Lanes,
    Load,
    Ramp,
    ReduceOp,
    Reinterpret,
    Select,
    Store,
    TransposeReduce,
    Unary,
    UnaryOp,
    VScale,
)
from gossamer_ir.verify import diagnostics

N = index_var("n")
DTYPES = [name for name in SCALARS if name != "handle"]
LOWERED = ("floordiv", "floormod", "fma", "tf32")
"""Operations of floats that `lower_math` lowers to arithmetic; the last two only of half precision."""


def first(array, dtype, lanes):
    """A masked load of the first elements of an array."""
    run = Ramp(ZERO, index(1), lanes)
    mask = Compare("lt", run, Broadcast(N, lanes))
    vector = DType(dtype, lanes.count, lanes.scalable).text
    return Load(array, (run,), vector, mask, Broadcast(zero_of(dtype), lanes))


def values(dtype, lanes):
    """Every operation on vectors, also those that the dtype does not have."""
    x, z = first("X", dtype, lanes), first("Z", dtype, lanes)
    yield x
    for op in get_args(BinaryOp):
        yield Binary(op, x, z)
    for op in get_args(UnaryOp):
        yield Unary(op, x)
    for op in get_args(CompareOp):
        yield Select(Compare(op, x, z), x, z)
    for op in get_args(ReduceOp):
        yield LaneReduce(op, x)
        yield TransposeReduce(op, (x, z))
    for name in sorted(INSTRUCTIONS):
        yield Call(name, (x, z, x)[: FUNCTIONS[name].arity], dtype_of(x))
    for other in DTYPES:
        target = DType(other, lanes.count, lanes.scalable).text
        yield Cast(target, x)
        yield Reinterpret(target, x)
    for narrow in ("P", "Q"):
        place = first(narrow, {"P": "int32", "Q": "int64"}[narrow], lanes)
        wide = Cast(DType("int64", lanes.count, lanes.scalable).text, place)
        yield Load("X", (wide,), x.dtype, x.predicate, x.passthrough)
        yield Load("X", (wide,), x.dtype)
    yield Load("X", (Ramp(ZERO, index(3), lanes),), x.dtype, x.predicate, x.passthrough)
    if DType.parse(dtype).is_integer:
        yield Ramp(constant(1, dtype), constant(3, dtype), lanes)


def stores(value):
    """The stores of a value: of consecutive elements and of others, masked and not; of a scalar, one."""
    array = f"Y_{DType.parse(dtype_of(value)).scalar}"
    lanes = lanes_of(value)
    if lanes is None:
        return [Store(array, (ZERO,), value)]
    run, strided = (Ramp(ZERO, index(stride), lanes) for stride in (1, 3))
    mask = Compare("lt", run, Broadcast(N, lanes))
    return [
        Store(array, (place,), value, predicate)
        for place in (run, strided)
        for predicate in (mask, None)
    ]


def is_lowered(value, dtype_name):
    """Whether `lower_math` has replaced an operation before it reaches the emitter."""
    dtype = DType.parse(dtype_name)
    operation = getattr(value, "op", None) or getattr(value, "function", None)
    return dtype.is_float and operation in (LOWERED if dtype.bits == 16 else LOWERED[:2])


def program(module, dtype, lanes):
    """A module with the operations that the dtype has."""
    arrays = {"X": dtype, "Z": dtype, "P": "int32", "Q": "int64"}
    arrays |= {f"Y_{other}": other for other in DTYPES}
    buffers = tuple(Buffer(name, (N,), each, name.lower()) for name, each in arrays.items())
    body = []
    for value in values(dtype, lanes):
        kept = stores(value) if not body else stores(value)[:1]
        if not diagnostics(module(*kept, buffers=buffers)) and not is_lowered(value, dtype):
            body += kept
    return module(For("i", ZERO, N, tuple(body)), buffers=buffers)


COMPILED = [
    *((name, dtype) for name in ("sve", "rvv") for dtype in DTYPES),
    ("rvv with float16", "float16"),
]


@pytest.mark.parametrize(("scalable_target", "dtype"), COMPILED, indirect=["scalable_target"])
def test_llvm_compiles_what_the_emitter_accepts(module, text, scalable_target, assemblies, dtype):
    # Vectors of most registers, unless instructions are those of another dtype.
    widest = {64} if dtype in ("bool", "int8", "int32", "float16", "float64") else set()
    counts = sorted({2, vscale_factor(dtype), *widest})
    programs = [program(module, dtype, Lanes(count, scalable=True)) for count in counts]
    assert all(len(each.functions[0].body[0].body) > 30 for each in programs)
    texts = [text(each, scalable_target.target_info) for each in programs]
    for code, count in zip(assemblies(texts, scalable_target), counts, strict=True):
        assert code is not None, f"LLVM ends the process for vectors of {count} * vscale lanes"
        assert not re.findall(r"\s(?:bl|call|tail)\t(\w+)", code), (
            f"calls for {count} * vscale lanes"
        )


@pytest.mark.parametrize("count", [1, 3, 128])
@pytest.mark.parametrize("dtype", ["float32", "bool"])
def test_other_numbers_of_lanes_are_refused_before_llvm_sees_them(
    module, text, scalable, dtype, count
):
    lanes = Lanes(count, scalable=True)
    vector = Broadcast(zero_of(dtype), lanes)
    value = LaneReduce("max", vector)
    with pytest.raises(UnsupportedError) as caught:
        text(module(Store("P", (ZERO,), mul(VScale(), Cast("int64", value)))), scalable)
    assert caught.value.code == "llvm.lanes"
