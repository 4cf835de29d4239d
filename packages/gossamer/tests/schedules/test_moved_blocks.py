"""Moved blocks and exchanged buffers as machine code: layouts, epilogues, transposed caches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from stepwise_schedules import integers, require_schedule, step

from gossamer_ir.script import parse_module

PROGRAM = """
@T.prim_func
def layer(indptr: T.handle, indices: T.handle, a: T.handle, b: T.handle, bias: T.handle, c: T.handle,
          m: T.int64, n: T.int64, nnz: T.int64, k: T.int64):
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))
    N = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(k)
    A = T.sp.match_buffer(a, (I, J), "float32")
    B = T.sp.match_buffer(b, (N, K), "float32")
    BIAS = T.sp.match_buffer(bias, (K,), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    TWICE = T.sp.alloc_buffer((N, K), "float32")
    SUM = T.sp.alloc_buffer((I, K), "float32")
    SHIFTED = T.sp.alloc_buffer((I, K), "float32")
    with T.sp.iteration([N, K], "SS", "twice") as [d, e]:
        TWICE[d, e] = B[d, e] * 2.0
    with T.sp.iteration([I, J, K], "SRS", "sum") as [i, j, l]:
        with T.init():
            SUM[i, l] = 0.0
        SUM[i, l] = SUM[i, l] + A[i, j] * TWICE[j, l]
    with T.sp.iteration([I, K], "SS", "shift") as [p, q]:
        SHIFTED[p, q] = SUM[p, q] + BIAS[q]
    with T.sp.iteration([I, K], "SS", "clip") as [r, s]:
        C[r, s] = T.max(SHIFTED[r, s], 0.0)
"""


def case(rows: int, columns: int, width: int) -> Any:
    random = np.random.default_rng(rows)
    dense = integers(random, rows, columns) * (random.random((rows, columns)) < 0.5)
    dense[: rows // 3] = 0
    coordinates = dense.nonzero()
    b, bias = integers(random, columns, width), integers(random, width)
    counts = (dense != 0).sum(1)
    arguments = {
        "indptr": np.cumsum([0, *counts]).astype(np.int32), "indices": coordinates[1].astype(np.int32),
        "a": dense[coordinates].astype(np.float32), "b": b, "bias": bias, "m": rows, "n": columns,
        "c": np.full((rows, width), 77, np.float32), "nnz": int(counts.sum()), "k": width,
    }  # fmt: skip
    return arguments, {"c": np.maximum(2 * dense @ b + bias, 0).astype(np.float32)}


SCHEDULES = {
    "an operand made row by row where it is used": (
        step("compute_at", "sum", loop="p"),
        step("compute_at", "twice", loop="j"),
    ),
    "an operand computed where it is read": (step("compute_inline", "twice"),),
    "what follows in the block that makes it": (
        step("reverse_compute_inline", "clip"),
        step("compute_at", "sum", loop="p"),
        step("parallel", "p"),
    ),
    "panels with padding": (
        step("transform_layout", "TWICE_data", index_map="d, e -> e // 4, d, e % 4", pad="nan"),
        step("transform_layout", "SUM_data", index_map="i, l -> l, i"),
    ),
    "transposed results": (
        step(
            "reindex_cache_write", "shift", buffer="SHIFTED_data", scope="local", order=("vq", "vp")
        ),
        step("reindex_cache_read", "sum", buffer="A_data", scope="local"),
        step("compute_at", "sum_A_data_local", loop="i"),
    ),
    "tiles of rows": (
        step("split", "p", factors=(None, 3)),
        step("compute_at", "sum", loop="p_0"),
        step("reverse_compute_at", "clip", loop="p_0"),
        step("parallel", "p_0"),
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_layer(name):
    cases = [case(*size) for size in ((0, 3, 4), (7, 5, 6), (5, 4, 0), (8, 3, 8))]
    require_schedule(parse_module(PROGRAM), cases, loop=SCHEDULES[name])
    renamed = [
        (op, names, {key: _at_position(value) for key, value in options.items()})
        for op, names, options in SCHEDULES[name]
    ]
    named = [(op, tuple(map(_at_position, names)), options) for op, names, options in renamed]
    require_schedule(parse_module(PROGRAM), cases, position=named)


def _at_position(name: Any) -> Any:
    """The name at the position stage, where names of buffers have no suffix `_data`."""
    return name.replace("_data", "") if isinstance(name, str) else name
