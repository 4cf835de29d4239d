"""Block-sparse attention as published: scores of the blocks of a mask, their softmax by rows, and the
product with the values; as three programs, and fused for each row of blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from stepwise_schedules import integers, require_schedule, step

from gossamer_ir.script import parse_module

HEADER = """
@T.prim_func
def attention(q: T.handle, k: T.handle, v: T.handle, s: T.handle, out: T.handle, indptr: T.handle,
              indices: T.handle, heads: T.int64, mb: T.int64, nb: T.int64, nnzb: T.int64,
              width: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    H = T.sp.dense_fixed(heads)
    I = T.sp.dense_fixed(mb)
    J = T.sp.compressed_varied(I, (nb, nnzb), (indptr, indices))
    N = T.sp.dense_fixed(nb)
    BI = T.sp.dense_fixed(4)
    BJ = T.sp.dense_fixed(4)
    F = T.sp.dense_fixed(width)
    Q = T.sp.match_buffer(q, (H, I, BI, F), "float32")
    K = T.sp.match_buffer(k, (H, N, BJ, F), "float32")
    V = T.sp.match_buffer(v, (H, N, BJ, F), "float32")
    S = T.sp.match_buffer(s, (H, I, J, BI, BJ), "float32")
    OUT = T.sp.match_buffer(out, (H, I, BI, F), "float32")
"""
SCORES = """
    with T.sp.iteration([H, I, J, BI, BJ, F], "SSSSSR", "scores") as [h, i, j, bi, bj, f]:
        with T.init():
            S[h, i, j, bi, bj] = 0.0
        S[h, i, j, bi, bj] = S[h, i, j, bi, bj] + Q[h, i, bi, f] * K[h, j, bj, f]
"""
VALUES = """
    with T.sp.iteration([H, I, J, BI, F, BJ], "SSRSSR", "values") as [h, i, j, bi, f, bj]:
        with T.init():
            OUT[h, i, bi, f] = 0.0
        OUT[h, i, bi, f] = OUT[h, i, bi, f] + S[h, i, j, bi, bj] * V[h, j, bj, f]
"""


def case(heads: int, rows: int, columns: int, width: int) -> Any:
    """A mask of blocks with empty rows at both ends and one full row."""
    random = np.random.default_rng(rows + width)
    mask = random.random((rows, columns)) < 0.4
    if rows > 2:
        mask[0] = mask[-1] = False
        mask[rows // 2] = True
    i, j = mask.nonzero()
    q = integers(random, heads, rows, 4, width)
    k, v = (integers(random, heads, columns, 4, width) for _ in "kv")
    s = integers(random, heads, len(i), 4, 4)
    scores = np.einsum("hpaf,hpbf->hpab", q[:, i], k[:, j])
    out = np.zeros((heads, rows, 4, width), np.float32)
    np.add.at(out, (slice(None), i), np.einsum("hpab,hpbf->hpaf", s, v[:, j]))
    indptr = np.cumsum([0, *mask.sum(1)]).astype(np.int32)
    arguments = {
        "q": q, "k": k, "v": v, "s": s, "out": np.full(out.shape, 77, np.float32),
        "indptr": indptr, "indices": j.astype(np.int32), "heads": heads, "mb": rows, "nb": columns,
        "nnzb": len(j), "width": width,
    }  # fmt: skip
    return arguments, scores, out


SIZES = [(1, 0, 3, 5), (2, 4, 3, 9), (1, 3, 4, 0), (2, 5, 2, 16), (1, 3, 2, 37)]
SDDMM = (
    step("split", "f", factors=(None, 8)),
    step("cache_read", "scores", buffer="Q_data", scope="local"),
    step("compute_at", "scores_Q_data_local", loop="i"),
    step(
        "reindex_cache_read",
        "scores",
        buffer="K_data",
        scope="local",
        order=("vh", "vj", "vf", "vbj"),
    ),
    step("compute_at", "scores_K_data_local", loop="j"),
    step("cache_write", "scores", buffer="S_data", scope="local"),
    step("reverse_compute_at", "scores_S_data_local", loop="j"),
    step("parallel", "i"),
)
SPMM = (
    step("split", "f", factors=(None, 2, 8)),
    step("reorder", "f_0", "j", "f_1", "bi", "f_2", "bj"),
    step("cache_read", "values", buffer="S_data", scope="local"),
    step("compute_at", "values_S_data_local", loop="j"),
    step("reindex_cache_read", "values", buffer="V_data", scope="local"),
    step("compute_at", "values_V_data_local", loop="f_1"),
    step("cache_write", "values", buffer="OUT_data", scope="local"),
    step("reverse_compute_at", "values_OUT_data_local", loop="f_0"),
    step("decompose_reduction", "values", loop="j"),
    step("parallel", "i"),
)


DOTS = (
    step("cache_read", "scores", buffer="Q_data", scope="local"),
    step("compute_at", "scores_Q_data_local", loop="i"),
    step("cache_write", "scores", buffer="S_data", scope="local"),
    step("reverse_compute_at", "scores_S_data_local", loop="j"),
    step("decompose_reduction", "scores", loop="f"),
    step("tensorize", "f", intrinsic="dot_product_float32"),
    step("parallel", "i"),
)
TILES = (
    step("split", "f", factors=(None, 2, 16)),
    step("reorder", "f_0", "j", "f_1", "bi", "f_2", "bj"),
    step("cache_write", "values", buffer="OUT_data", scope="local"),
    step("reverse_compute_at", "values_OUT_data_local", loop="f_0"),
    step("decompose_reduction", "values", loop="j"),
    step("cache_read", "values", buffer="S_data", scope="local"),
    step("compute_at", "values_S_data_local", loop="j"),
    step("reindex_cache_read", "values", buffer="V_data", scope="local", order=("vh", "vj", "vbj", "vf")),
    step("compute_at", "values_V_data_local", loop="f_1"),
    step("tensorize", "bi", intrinsic="outer_product_float32_4x16"),
    step("parallel", "i"),
)  # fmt: skip
"""The same program, with a micro-kernel for the arithmetic of a block."""


@pytest.mark.parametrize("steps", [SDDMM, DOTS], ids=["cached", "tensorized"])
def test_scores_of_the_blocks_of_a_mask(steps):
    cases = [(arguments, {"s": s}) for arguments, s, _ in (case(*size) for size in SIZES)]
    require_schedule(parse_module(HEADER + SCORES), cases, loop=steps)


@pytest.mark.parametrize("steps", [SPMM, TILES], ids=["cached", "tensorized"])
def test_values_of_the_blocks_of_a_mask(steps):
    cases = [(arguments, {"out": out}) for arguments, _, out in (case(*size) for size in SIZES)]
    order = step("sparse_reorder", "values", order=("h", "i", "j", "bi", "f", "bj"))
    require_schedule(parse_module(HEADER + VALUES), cases, coordinate=(order,), loop=steps)


FUSED = """
@T.prim_func
def fused(q: T.handle, k: T.handle, v: T.handle, out: T.handle, indptr: T.handle, indices: T.handle,
          m: T.int64, n: T.int64, nnz: T.int64, width: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))
    N = T.sp.dense_fixed(n)
    F = T.sp.dense_fixed(width)
    Q = T.sp.match_buffer(q, (I, F), "float64")
    K = T.sp.match_buffer(k, (N, F), "float64")
    V = T.sp.match_buffer(v, (N, F), "float64")
    OUT = T.sp.match_buffer(out, (I, F), "float64")
    S = T.sp.alloc_buffer((I, J), "float64")
    P = T.sp.alloc_buffer((I, J), "float64")
    MOST = T.sp.alloc_buffer((I,), "float64")
    TOTAL = T.sp.alloc_buffer((I,), "float64")
    with T.sp.iteration([I, J, F], "SSR", "scores") as [i, j, f]:
        with T.init():
            S[i, j] = 0.0
        S[i, j] = S[i, j] + Q[i, f] * K[j, f]
    with T.sp.iteration([I, J], "SR", "most") as [i, j]:
        with T.init():
            MOST[i] = T.float64("-inf")
        MOST[i] = T.max(MOST[i], S[i, j])
    with T.sp.iteration([I, J], "SS", "powers") as [i, j]:
        P[i, j] = T.exp(S[i, j] - MOST[i])
    with T.sp.iteration([I, J], "SR", "total") as [i, j]:
        with T.init():
            TOTAL[i] = 0.0
        TOTAL[i] = TOTAL[i] + P[i, j]
    with T.sp.iteration([I, J, F], "SRS", "values") as [x, y, z]:
        with T.init():
            OUT[x, z] = 0.0
        OUT[x, z] = OUT[x, z] + P[x, y] / TOTAL[x] * V[y, z]
"""
TOGETHER = (
    step("sparse_compute_at", "total", into="values", var="x"),
    *(
        step("sparse_compute_at", name, into="values_x", var="x")
        for name in ("powers", "most", "scores")
    ),
)


def row_case(rows: int, columns: int, width: int) -> Any:
    """Rows with no column, with one, and with all columns."""
    random = np.random.default_rng(rows)
    mask = random.random((rows, columns)) < 0.5
    mask[::3], mask[1:2] = False, True
    q, k, v = (random.normal(size=(count, width)) for count in (rows, columns, columns))
    out = np.zeros((rows, width))
    for row in range(rows):
        row_columns = mask[row].nonzero()[0]
        powers = np.exp(k[row_columns] @ q[row])
        out[row] = powers / powers.sum() @ v[row_columns] if len(row_columns) else 0
    arguments = {
        "q": q, "k": k, "v": v, "out": np.full(out.shape, 77.0), "m": rows, "n": columns,
        "indptr": np.cumsum([0, *mask.sum(1)]).astype(np.int32),
        "indices": mask.nonzero()[1].astype(np.int32), "nnz": int(mask.sum()), "width": width,
    }  # fmt: skip
    return arguments, {"out": out}


def test_rows_of_scores_weights_and_values_together():
    cases = [row_case(*size) for size in ((0, 3, 4), (7, 5, 3), (4, 6, 8))]
    tolerance = 64 * float(np.finfo(np.float64).eps)
    inlined = (
        step("compute_inline", "powers"),
        step("split", "z", factors=(None, 4)),
        step("parallel", "x"),
    )
    require_schedule(
        parse_module(FUSED), cases, tolerance=tolerance, coordinate=TOGETHER, loop=inlined
    )
