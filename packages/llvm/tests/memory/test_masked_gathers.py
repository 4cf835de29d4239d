"""Masked gathers of few lanes load all lanes one by one, where each lane has an index that is in bounds."""

import re

import numpy as np
import pytest
from msgspec.structs import replace
from native_kernel import run_native

from gossamer_ir.core.build import ZERO, add, constant, floordiv, index, index_var, mul, sub
from gossamer_ir.nodes import (
    Binary,
    Broadcast,
    Buffer,
    Cast,
    Compare,
    For,
    Function,
    InRange,
    Lanes,
    Load,
    Module,
    Param,
    Ramp,
    Store,
)

EIGHT, ROW, N, M = Lanes(8), index_var("i"), index_var("n"), index_var("m")
LANES = Ramp(mul(ROW, index(8)), index(1), EIGHT)
REACHED = Compare("lt", LANES, Broadcast(N, EIGHT))
OTHER = Compare("lt", LANES, Broadcast(M, EIGHT))
NO_INDEX = Broadcast(constant(0, "int32"), EIGHT)
NOTHING = Broadcast(constant(-1, "float32"), EIGHT)
BUFFERS = (
    Buffer("J", (N,), "int32", "j"),
    Buffer("X", (M,), "float32", "x"),
    Buffer("Y", (N,), "float32", "y"),
)
IN_BOUNDS = InRange("J", ZERO, M)


def gathering(*facts, mask=REACHED, index_mask=None, lanes=LANES):
    """Y[k] = X[J[k]] for k in [0, n), in vectors of eight lanes."""
    where = Cast("int64x8", Load("J", (lanes,), "int32x8", index_mask or mask, NO_INDEX))
    gathered = Load("X", (where,), "float32x8", mask, NOTHING)
    body = For(
        "i", ZERO, floordiv(add(N, index(7)), index(8)), (Store("Y", (lanes,), gathered, mask),)
    )
    params = (*(Param(name, "handle") for name in "jxy"), Param("n", "int64"), Param("m", "int64"))
    return Module(
        "flat", (Function("take", params, (body,), buffers=BUFFERS, facts=facts),), "take"
    )


def test_lanes_with_indices_in_bounds_are_loaded_one_by_one(text, checked):
    source = text(gathering(IN_BOUNDS))
    assert checked(source)
    assert source.count("load float, ptr") == 8
    assert source.count("call <8 x float> @llvm.masked.gather") == 1


@pytest.mark.parametrize(("first", "comparisons"), [(0, 0), (-3, 1)])
def test_lanes_are_compared_with_the_start_of_an_array_only_if_they_may_be_before_it(
    first, comparisons, text
):
    lanes = Ramp(add(mul(ROW, index(8)), index(first)), index(1), EIGHT)
    source = text(gathering(IN_BOUNDS, lanes=lanes))
    assert len(re.findall(r"icmp sge i64 %v\d+, 0", source)) == comparisons


OTHERS = {
    "nothing is known of the indices": gathering(),
    "they may be negative": gathering(replace(IN_BOUNDS, low=index(-1))),
    "they are in bounds of something else": gathering(replace(IN_BOUNDS, high=N)),
    "they are masked otherwise": gathering(IN_BOUNDS, index_mask=OTHER),
}


@pytest.mark.parametrize("program", OTHERS.values(), ids=OTHERS.keys())
def test_other_gathers_use_the_masked_instruction(program, text):
    source = text(program)
    assert "load float, ptr" not in source
    assert source.count("call <8 x float> @llvm.masked.gather") == 1


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 16, 23])
def test_no_index_past_the_end_of_the_array_is_used(count):
    """An element at such an index is far from all memory of the process."""
    x = np.arange(5, dtype=np.float32) + 1
    beyond = np.full(count + 16, 2**30, np.int32)
    beyond[:count] = np.random.default_rng(count).integers(0, 5, count)
    y = np.full(count, -5, np.float32)
    assert run_native(gathering(IN_BOUNDS), (beyond[:count], x, y), count, 5).status == 0
    assert np.array_equal(y, x[beyond[:count]])


def test_no_index_before_the_array_is_used():
    """Vectors that begin three lanes before the array: their first lanes are masked."""
    lanes = Ramp(sub(mul(ROW, index(8)), index(3)), index(1), EIGHT)
    inside = Binary(
        "and",
        Compare("ge", lanes, Broadcast(ZERO, EIGHT)),
        Compare("lt", lanes, Broadcast(N, EIGHT)),
    )
    x, count = np.arange(5, dtype=np.float32) + 1, 29
    beyond = np.full(count + 32, -(2**30), np.int32)
    indices = beyond[16 : 16 + count]
    indices[:] = np.random.default_rng(0).integers(0, 5, count)
    y = np.full(count, -5, np.float32)
    program = gathering(IN_BOUNDS, mask=inside, lanes=lanes)
    assert run_native(program, (indices, x, y), count, 5).status == 0
    assert np.array_equal(y, x[indices])
