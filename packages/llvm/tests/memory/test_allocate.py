"""Buffers on the heap begin at the start of a cache line, and what is freed is what was allocated."""

from __future__ import annotations

import re

from gossamer_ir.script import parse_module
from gossamer_llvm import TargetInfo, emit_llvm_ir

TEXT = """
@T.prim_func
def copy(x: T.handle, n: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (n,), "float32")
    Y = T.alloc_buffer((n,), "float32")
    for i in T.serial(n):
        Y[i] = X[i]
    for i in T.serial(n):
        X[i] = Y[i] + 1.0
"""


def test_a_buffer_on_the_heap_begins_at_a_cache_line():
    text = emit_llvm_ir(parse_module(TEXT), target_info=TargetInfo("x86_64-unknown-linux-gnu"))
    (allocated,) = re.findall(r"(%\S+) = call noalias ptr @calloc\(", text)
    (beyond,) = re.findall(rf"(%\S+) = getelementptr i8, ptr {allocated}, i64 63", text)
    (address,) = re.findall(
        rf"(%\S+) = call ptr @llvm.ptrmask.p0.i64\(ptr {beyond}, i64 -64\)", text
    )
    assert re.search(rf"getelementptr .*ptr {address},", text), "elements are at aligned addresses"
    (slot,) = re.findall(rf"store ptr {allocated}, ptr (%\S+),", text)
    assert re.search(rf"load ptr, ptr {slot}", text), "the slot of the allocation is freed"
    assert re.search(r"add i64 %\S+, 16\n", text), "the reserve of one line, in elements"
