"""Vectors are loaded and stored as whole vectors, under masks, or lane by lane."""

from __future__ import annotations

import re

import pytest

from gossamer_ir.core.build import ZERO, add, constant, index, index_var, mul
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Broadcast,
    Buffer,
    Cast,
    Compare,
    Const,
    For,
    Lanes,
    Load,
    Prefetch,
    Ramp,
    Store,
)
from gossamer_llvm import TargetInfo, emit_llvm_ir

ROW, N = index_var("i"), index_var("n")
WIDE = Lanes(16)
RUN = Ramp(mul(ROW, index(16)), index(1), WIDE)
NOTHING = Broadcast(constant(0, "float32"), WIDE)


def tail(limit):
    return Compare("lt", RUN, Broadcast(limit, WIDE))


def copy(predicate):
    rest = NOTHING if predicate is not None else None
    load = Load("X", (RUN,), "float32x16", predicate, rest)
    return Store("Y", (RUN,), load, predicate)


def test_runs_become_vector_loads_of_element_alignment(loop, text, checked):
    source = text(loop(copy(None)))
    assert checked(source)
    assert re.search(r"load <16 x float>, ptr %v\d+, align 4", source)
    assert re.search(r"store <16 x float> %v\d+, ptr %v\d+, align 4", source)
    assert "llvm.masked" not in source


@pytest.mark.parametrize(
    ("predicate", "operations"),
    [
        (tail(N), ["llvm.masked.load.v16f32.p0", "llvm.masked.store.v16f32.p0"]),
        (Broadcast(Const("bool", "True"), WIDE), []),
        (Broadcast(Const("bool", "False"), WIDE), []),
        (
            Compare("lt", Ramp(ZERO, index(1), WIDE), Broadcast(index(16), WIDE)),
            [],
        ),
    ],
)
def test_constant_masks_are_folded(loop, text, checked, predicate, operations):
    source = text(loop(copy(predicate)))
    assert checked(source)
    used = set(re.findall(r"llvm\.masked\.\w+\.\w+\.p0", source))
    assert used == set(operations)


def test_lane_masks_compare_32_bit_lanes(loop, text, checked):
    source = text(loop(copy(tail(N))))
    assert checked(source)
    assert re.search(r"icmp ult <16 x i32> <i32 0, i32 1,", source)
    assert "<16 x i64>" not in source


@pytest.mark.parametrize("has_costly_masks", [True, False])
def test_masks_of_the_last_lanes_compare_32_bit_lanes_in_vector_registers(
    loop, checked, has_costly_masks
):
    first = Compare("ge", Ramp(ZERO, index(1), WIDE), Broadcast(N, WIDE))
    target_info = TargetInfo("x86_64-unknown-linux-gnu", has_costly_masks=has_costly_masks)
    source = emit_llvm_ir(loop(copy(first)), target_info=target_info)
    assert checked(source)
    assert ("<16 x i64>" in source) != has_costly_masks
    assert "masked.store" in source


def test_lane_masks_compare_indices_that_fit_32_bits(module, text, checked):
    limit = Cast("int64", Load("J", (ROW, ZERO, ZERO), "int32"))
    source = text(module(For("i", ZERO, index(100), (copy(tail(limit)),)), buffers=NARROW))
    assert checked(source)
    assert re.search(r"icmp ult <16 x i32> %v\d+, %v\d+", source)
    assert "<16 x i64>" not in source


NARROW = (
    Buffer("J", (N, index(8), index(1)), "int32", "j"),
    Buffer("X", (N,), "float32", "x"),
    Buffer("Y", (N,), "float32", "y"),
)


EIGHT = Ramp(mul(ROW, index(8)), index(1), Lanes(8))


def test_few_lanes_are_scattered_as_scalar_stores(module, text, checked):
    lane = Ramp(ZERO, index(1), Lanes(8))
    where = Cast("int64x8", Load("J", (ROW, lane, ZERO), "int32x8"))
    scatter = Store("Y", (where,), Load("X", (EIGHT,), "float32x8"))
    source = text(module(For("i", ZERO, N, (scatter,)), buffers=NARROW))
    assert checked(source)
    assert source.count("store float") == 8
    assert "llvm.masked" not in source


def test_lanes_beside_a_scalar_offset_stay_narrow(module, text, checked):
    narrow = Load("J", (ROW, Ramp(ZERO, index(1), WIDE), ZERO), "int32x16")
    widened = Cast("int64x16", narrow)
    for sum_ in (
        Binary("add", widened, Broadcast(N, WIDE)),
        Binary("add", Broadcast(N, WIDE), widened),
    ):
        gather = Store("Y", (RUN,), Load("X", (sum_,), "float32x16"))
        source = text(module(For("i", ZERO, N, (gather,)), buffers=NARROW))
        assert checked(source)
        assert "llvm.masked.gather.v16f32.v16p0" in source
        assert re.search(r"getelementptr float, ptr %v\d+, <16 x i32>", source)


def test_a_run_in_front_of_single_elements_is_a_vector(module, text, checked):
    lane = Ramp(ZERO, index(1), Lanes(8))
    at = (ROW, lane, ZERO)
    mask = Compare("lt", Load("J", at, "int32x8"), Broadcast(constant(3, "int32"), Lanes(8)))
    nothing = Broadcast(constant(0, "int32"), Lanes(8))
    run = Store("J", at, Load("J", at, "int32x8", mask, nothing), mask)
    source = text(module(For("i", ZERO, N, (run,)), buffers=NARROW))
    assert checked(source)
    assert "llvm.masked.load.v8i32.p0" in source
    assert "llvm.masked.store.v8i32.p0" in source


def test_vector_indices_gather_and_scatter(loop, text, checked):
    where = Load("P", (RUN,), "int64x16")
    source = text(loop(Store("Y", (where,), Load("X", (where,), "float32x16"))))
    assert checked(source)
    assert "llvm.masked.gather.v16f32.v16p0" in source
    assert "llvm.masked.scatter.v16f32.v16p0" in source


def test_masked_access_to_private_memory_moves_whole_vectors(module, text, checked):
    acc = Buffer("acc", (index(20),), "float32", scope="local")
    run = Ramp(index(16), index(1), WIDE)
    mask = Compare("lt", run, Broadcast(N, WIDE))
    old = Load("acc", (run,), "float32x16", mask, NOTHING)
    source = text(module(Allocate(acc), Store("acc", (run,), Binary("add", old, old), mask)))
    assert checked(source)
    assert "llvm.masked" not in source
    assert "alloca [64 x float], align 64" in source


def test_prefetch_addresses_may_lie_outside(loop, text, checked):
    source = text(loop(Prefetch("X", (add(ROW, index(1000)),))))
    assert checked(source)
    assert "llvm.prefetch.p0" in source
    assert "inbounds float" not in source
