"""A cached copy over nested fibers moves into a tile of these fibers."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder

FIBERS = """
@T.prim_func
def copy(p: T.handle, q: T.handle, x: T.handle, y: T.handle, n: T.int64, c: T.int64, z: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (n + 1,), "int64")
    Q = T.match_buffer(q, (c + 1,), "int64")
    X = T.match_buffer(x, (z,), "float32")
    Y = T.match_buffer(y, (z,), "float32")
    T.assume(in_range(P, 0, c + 1))
    T.assume(monotone(P))
    T.assume(in_range(Q, 0, z + 1))
    T.assume(monotone(Q))
    for i in T.serial(n):
        for j in T.serial(P[i + 1] - P[i]):
            for k in T.serial(Q[P[i] + (j + 1)] - Q[P[i] + j]):
                with T.block("copy"):
                    vi = T.axis.spatial(n, i)
                    vj = T.axis.spatial(P[vi + 1] - P[vi], j)
                    vk = T.axis.spatial(Q[P[vi] + (vj + 1)] - Q[P[vi] + vj], k)
                    Y[Q[P[vi] + vj] + vk] = X[Q[P[vi] + vj] + vk]
"""


@pytest.mark.parametrize("lengths", [[], [0, 0], [3, 0, 9, 1, 8, 0]])
def test_fibers_end_where_their_row_says(lengths):
    builder = ScheduleBuilder(parse_module(FIBERS))
    builder.cache_write("copy", buffer="Y", scope="local")
    builder.split("j", factors=(None, 4))
    builder.reverse_compute_at("copy_Y_local", loop="j_0")
    verify(builder.module)
    p = np.cumsum([0, *lengths])
    q = np.cumsum([0, *np.arange(p[-1]) % 3])
    x = np.arange(1, q[-1] + 1, dtype=np.float32)
    y = np.zeros_like(x)
    sizes = {"n": len(lengths), "c": int(p[-1]), "z": int(q[-1])}
    run(builder.module, {"p": p, "q": q, "x": x, "y": y, **sizes})
    np.testing.assert_array_equal(y, x)


LONGER = """
@T.prim_func
def rows(a: T.handle, b: T.handle, indptr: T.handle, m: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 1})
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_varied(I, (nnz, nnz), indptr, "int64")
    A = T.sp.match_buffer(a, (I, J), "int64", default=9)
    B = T.sp.match_buffer(b, (I,), "int64")
    for i in T.serial(m):
        for j in T.serial(%s):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                if A[vi, vj] != 9:
                    %s[vi%s] = A[vi, vj] * 2
"""


@pytest.mark.parametrize("extent", ["2", "m", "nnz"])
@pytest.mark.parametrize(
    ("primitive", "stored"), [("cache_read", ("B", "")), ("cache_inplace", ("A", ", vj"))]
)
def test_a_loop_beyond_the_fiber_has_no_copy_of_it(extent, primitive, stored):
    builder = ScheduleBuilder(parse_module(LONGER % (extent, *stored)))
    with pytest.raises(ScheduleError) as caught:
        getattr(builder, primitive)("b", buffer="A", scope="local")
    assert caught.value.code == f"schedule.{primitive}.not_proved"
