"""Gathers from small buffers on the stack select lanes of registers, where the target can."""

from __future__ import annotations

import pytest

from gossamer_ir.script import parse_module
from gossamer_llvm import TargetInfo, avx512_lowering, emit_llvm_ir

AVX512 = avx512_lowering()
TEXT = """
@T.prim_func
def select(x: T.handle, p: T.handle, y: T.handle, n: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (n,), "DTYPE")
    P = T.match_buffer(p, (n,), "int32")
    Y = T.match_buffer(y, (n,), "DTYPE")
    W = T.alloc_buffer((SIZE,), "DTYPE", scope="local")
    for i in T.serial(SIZE):
        W[i] = X[i]
    Y[T.ramp(0, 1, LANES)] = VALUE
"""
INDEX = 'T.cast(P[T.ramp(0, 1, LANES)], "int64xLANES")'
MASKED = (
    "T.load(W, INDEX, predicate=P[T.ramp(0, 1, LANES)] < T.broadcast(T.int32(9), LANES), "
    "passthrough=T.broadcast(0.0, LANES))"
)


def emitted(*, dtype="float32", size=32, lanes=8, value="W[INDEX]", lowering=AVX512, index=INDEX):
    text = TEXT.replace("VALUE", value).replace("INDEX", index).replace("DTYPE", dtype)
    flat = parse_module(text.replace("SIZE", str(size)).replace("LANES", str(lanes)))
    target_info = TargetInfo("x86_64-unknown-linux-gnu", inserted_lanes=1)
    return emit_llvm_ir(flat, target_info=target_info, lowering=lowering)


@pytest.mark.parametrize(
    ("dtype", "size", "lanes", "name", "permutations"),
    [
        ("float32", 32, 8, "ps", 1),
        ("float32", 16, 16, "ps", 1),
        ("float32", 64, 4, "ps", 2),
        ("float64", 32, 8, "pd", 2),
        ("int32", 20, 8, "d", 1),
        ("int64", 16, 2, "q", 1),
    ],
)
def test_lanes_are_selected_from_registers(dtype, size, lanes, name, permutations):
    text = emitted(dtype=dtype, size=size, lanes=lanes)
    calls = [line for line in text.splitlines() if "= call" in line and "vpermi2var" in line]
    assert len(calls) == permutations
    assert all(f"llvm.x86.avx512.vpermi2var.{name}.512" in line for line in calls)
    assert "masked.gather" not in text


def test_lanes_that_are_not_enabled_have_the_value_beside():
    text = emitted(value=MASKED)
    assert "vpermi2var" in text
    assert "select <8 x i1>" in text


def test_selected_indices_of_a_masked_gather_are_not_blended():
    inner = MASKED.replace("T.load(W", "T.load(W").replace("0.0", "T.int32(0)")
    outer = MASKED.replace("T.load(W, INDEX", f'T.load(X, T.cast({inner}, "int64xLANES")')
    text = emitted(dtype="int32", value=outer.replace("0.0", "T.int32(0)"))
    assert "vpermi2var" in text
    assert "select" not in text.replace("@select", "").replace("select_", "")


@pytest.mark.parametrize(
    "changed",
    [
        {"lowering": None},
        {"size": 65},
        {"dtype": "float16"},
        {"dtype": "float64", "lanes": 16},
        {"index": "T.ramp(0, 2, LANES)"},
        {"value": "X[INDEX]"},
    ],
)
def test_other_loads_are_gathers(changed):
    assert "vpermi2var" not in emitted(**changed)
