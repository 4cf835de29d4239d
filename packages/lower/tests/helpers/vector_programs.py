"""The parameters of programs in vectors."""

from __future__ import annotations

import numpy as np

HEADER = """
@T.prim_func
def program(x: T.handle, y: T.handle, p: T.handle, s: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    P = T.match_buffer(p, (n,), "int32")
    S = T.match_buffer(s, (1,), "float32")
    T.assume(in_range(P, 0, n))
"""
SCRATCH = np.zeros(1, dtype=np.float32)
