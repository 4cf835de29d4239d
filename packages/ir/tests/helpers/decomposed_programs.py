"""Programs that tests store in parts."""

from __future__ import annotations

from gossamer_ir.script import parse_module

ROW_SUMS = parse_module("""
@T.prim_func
def sums(a: T.handle, y: T.handle, p: T.handle, x: T.handle, m: T.int64, n: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, n, (p, x), "int32")
    A = T.sp.match_buffer(a, (I, J), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "sums") as [i, j]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + A[i, j]
""")
