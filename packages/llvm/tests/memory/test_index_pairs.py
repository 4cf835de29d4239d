"""Indices of few lanes are loaded two at a time."""

from __future__ import annotations

import re

from gossamer_ir.core.build import ZERO, constant, index, index_var, mul
from gossamer_ir.nodes import Buffer, Cast, For, Lanes, Load, Ramp, Store

ROW, N = index_var("i"), index_var("n")
EIGHT = Ramp(mul(ROW, index(8)), index(1), Lanes(8))
NARROW = (
    Buffer("J", (N, index(8), index(1)), "int32", "j"),
    Buffer("X", (N,), "float32", "x"),
    Buffer("Y", (N,), "float32", "y"),
)


def test_few_lanes_are_gathered_with_indices_in_pairs(module, text, checked):
    lane = Ramp(ZERO, index(1), Lanes(8))
    where = Cast("int64x8", Load("J", (ROW, lane, ZERO), "int32x8"))
    gather = Store("Y", (EIGHT,), Load("X", (where,), "float32x8"))
    source = text(module(For("i", ZERO, N, (gather,)), buffers=NARROW))
    assert checked(source)
    assert len(re.findall(r"load i64, ptr %v\d+, align 4", source)) == 4
    assert source.count("load float, ptr") == 8
    assert "llvm.masked" not in source


def test_indices_that_the_function_writes_are_loaded_one_by_one(module, text, checked):
    lane = Ramp(ZERO, index(1), Lanes(8))
    narrow = Load("J", (ROW, lane, ZERO), "int32x8")
    gather = Store("Y", (EIGHT,), Load("X", (Cast("int64x8", narrow),), "float32x8"))
    written = Store("J", (ROW, ZERO, ZERO), constant(0, "int32"))
    source = text(module(For("i", ZERO, N, (gather, written)), buffers=NARROW))
    assert checked(source)
    assert not re.findall(r"load i64, ptr %v\d+, align 4", source)
