"""Non-temporal stores: aligned vectors are stored around the caches, others as usual, then a fence."""

from __future__ import annotations

import pytest

from gossamer_ir.script import parse_module
from gossamer_llvm import TargetInfo, emit_llvm_ir

TEXT = """
@T.prim_func
def copy(x: T.handle, y: T.handle, n: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    for i in T.serial(n // 16):
        T.store(Y, INDEX, value=X[INDEX], nontemporal=True)
"""


def emitted(index: str) -> str:
    flat = parse_module(TEXT.replace("INDEX", index))
    return emit_llvm_ir(flat, target_info=TargetInfo("x86_64-unknown-linux-gnu"))


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_a_vector_is_stored_around_the_caches_if_its_address_is_aligned(lanes):
    text = emitted(f"T.ramp(i * 16, 1, {lanes})")
    size = 4 * lanes
    (hinted,) = [line for line in text.splitlines() if "!nontemporal" in line]
    assert hinted.strip().startswith(f"store <{lanes} x float>")
    assert f", align {size}, " in hinted
    (usual,) = [line for line in text.splitlines() if "store <" in line and line != hinted]
    assert usual.endswith(", align 4")
    assert "!{i32 1}" in text
    assert text.index("fence seq_cst") < text.index("ret i64")


@pytest.mark.parametrize("index", ["i", "T.ramp(i * 16, 1, 2)", "T.ramp(i, 2, 4)"])
def test_other_stores_are_temporal(index):
    text = emitted(index)
    assert "!nontemporal" not in text
    assert "fence" not in text
