"""Buffers that loops fill right after they are allocated are not cleared; all others are."""

from __future__ import annotations

import pytest

from gossamer_ir.script import parse_module
from gossamer_llvm import TargetInfo, emit_llvm_ir
from gossamer_llvm.memory.filled_buffers import filled_buffers

SCRIPT = """
@T.prim_func
def pack(x: T.handle, y: T.handle, n: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (n, 16), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    for t in T.serial(n // 8):
        Z = T.alloc_buffer((8, 16), "float32", scope="local")
        W = T.alloc_buffer((1,), "float32", scope="local")
        for i in T.serial(8):
            Z[i, T.ramp(0, 1, 8)] = X[t * 8 + i, T.ramp(0, 1, 8)]
            Z[i, T.ramp(8, 1, 8)] = X[t * 8 + i, T.ramp(8, 1, 8)]
        W[0] = 0.0
        for i in T.serial(8):
            W[0] = W[0] + Z[i, 3]
        Y[t] = W[0]
"""
FIRST = "            Z[i, T.ramp(0, 1, 8)] = X[t * 8 + i, T.ramp(0, 1, 8)]\n"
SECOND = "            Z[i, T.ramp(8, 1, 8)] = X[t * 8 + i, T.ramp(8, 1, 8)]\n"
ROWS = "        for i in T.serial(8):\n" + FIRST


def module(*changes):
    text = SCRIPT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return parse_module(text)


def names_of_filled(*changes):
    (function,) = module(*changes).functions
    return filled_buffers(function)


FILLED = {
    "vectors of a row": (),
    "one element after the other": (
        (FIRST, "            for k in T.serial(16):\n                Z[i, k] = X[t * 8 + i, k]\n"),
        (SECOND, ""),
    ),
    "vectors in a loop": (
        (FIRST, "            for k in T.serial(2):\n    " + FIRST.replace("(0,", "(k * 8,")),
        (SECOND, ""),
    ),
    "vectors that overlap": ((SECOND, SECOND.replace("(8, 1, 8)", "(4, 1, 8)") + SECOND),),
    "rows in another loop, and columns outside": (
        (ROWS, "        for k in T.serial(16):\n            for i in T.serial(8):\n"),
        (SECOND, "                Z[i, k] = X[t * 8 + i, k]\n"),
    ),
}


@pytest.mark.parametrize("changes", FILLED.values(), ids=FILLED)
def test_a_buffer_that_loops_fill_is_not_cleared(changes):
    assert names_of_filled(*changes) == {"Z"}
    text = emit_llvm_ir(module(*changes), target_info=TargetInfo("x86_64-unknown-linux-gnu"))
    assert text.count("call void @llvm.memset") == 1, "the buffer W of one element"


NOT_FILLED = {
    "a column is left out": ((SECOND, SECOND.replace("8, 1, 8", "8, 1, 4")),),
    "columns of every other element": ((SECOND, SECOND.replace("8, 1, 8", "8, 2, 4")),),
    "the first row is left out": ((ROWS, ROWS.replace("serial(8)", "serial(1, 8)")),),
    "the last row is left out": ((ROWS, ROWS.replace("serial(8)", "serial(7)")),),
    "as many rows as are known at run time": ((ROWS, ROWS.replace("serial(8)", "serial(n)")),),
    "the same row again and again": ((SECOND, SECOND.replace("Z[i,", "Z[0,")),),
    "lanes that are masked": (
        (
            SECOND,
            "            T.store(Z, i, T.ramp(8, 1, 8), value=X[t * 8 + i, T.ramp(8, 1, 8)],"
            " predicate=T.ramp(8, 1, 8) < T.broadcast(n, 8))\n",
        ),
    ),
    "a store under a condition": ((SECOND, "            if n > i:\n    " + SECOND),),
    "a loop that reads the buffer": ((SECOND, SECOND.replace("X[t * 8 + i", "Z[i")),),
    "another statement first": ((ROWS, "        Y[0] = Z[0, 0]\n" + ROWS),),
}


@pytest.mark.parametrize("changes", NOT_FILLED.values(), ids=NOT_FILLED)
def test_a_buffer_that_may_be_read_as_it_was_is_cleared(changes):
    assert names_of_filled(*changes) == frozenset()
    text = emit_llvm_ir(module(*changes), target_info=TargetInfo("x86_64-unknown-linux-gnu"))
    assert text.count("call void @llvm.memset") == 2


def test_a_buffer_with_memory_beyond_its_elements_is_cleared():
    """A vector at its end may be read beyond them."""
    rows = (("(8, 16)", "(7, 16)"), (ROWS, ROWS.replace("serial(8)", "serial(7)")))
    assert names_of_filled(*rows) == {"Z"}
    text = emit_llvm_ir(module(*rows), target_info=TargetInfo("x86_64-unknown-linux-gnu"))
    assert text.count("call void @llvm.memset") == 2
