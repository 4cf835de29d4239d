"""Loads of matrices from the shared memory of a block."""

from __future__ import annotations

import re

from gossamer_ir.script import parse_module
from gossamer_llvm import TargetInfo, emit_llvm_ir, nvptx_lowering

TEXT = """
@T.prim_func
def f(x: T.handle, n: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (n, 64), "float16")
    for t in T.thread_binding(32, thread="threadIdx.x"):
        S = T.alloc_buffer((64,), "float16", scope="shared")
        R = T.alloc_buffer((2,), "float16", scope="local")
        for i in T.serial(n):
            S[t] = X[i, t]
            for load in T.serial(1, annotations={"warp_instruction": "load", "count": 1}):
                R[0] = S[t]
            X[i, t] = R[0]
"""


def test_a_matrix_load_stays_in_the_loop_that_fills_the_memory():
    """Its address is the same in all iterations, but not what is there."""
    target_info = TargetInfo("nvptx64-nvidia-cuda", is_device=True)
    text = emit_llvm_ir(
        parse_module(TEXT), target_info=target_info, lowering=nvptx_lowering(has_async_copies=False)
    )
    filled, loaded = (
        re.search(word, text).start() for word in ("store i16", "call i32 @llvm.nvvm.ldm")
    )
    assert filled < loaded
