"""Steps that were found to change what a program means, by what was wrong; they are refused now, or right."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from gossamer_ir.contracts import Step
from gossamer_ir.script import parse_module
from tests.generated import Program
from tests.generated.disagreements import judged
from tests.generated.sequences import kept

I32 = np.int32

RAGGED = """
@T.prim_func
def main(y: T.handle, indptr_j: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_varied(I, n1, indptr_j)
    Y = T.sp.match_buffer(y, (I,), "int32")
    with T.sp.iteration([I], "S", "outer") as [i]:
        with T.sp.iteration([J], "R", "inner") as [j]:
            with T.init():
                Y[i] = 0
            Y[i] = Y[i] + 1
"""
SLOTTED = """
@T.prim_func
def main(y: T.handle, b: T.handle, indices_m: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    K = T.sp.dense_fixed(n0)
    M = T.sp.compressed_fixed(K, (6, n1), indices_m)
    B = T.sp.match_buffer(b, (K, M), "int32")
    Y = T.sp.match_buffer(y, (K,), "int32")
    with T.sp.iteration([K], "S", "step") as [k]:
        Y[k] = B[k, 1]
"""
BESIDE = """
@T.prim_func
def main(y: T.handle, z: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_fixed(n1)
    Y = T.sp.match_buffer(y, (J,), "int32")
    Z = T.sp.match_buffer(z, (I, J), "int32")
    with T.sp.iteration([I], "S", "outer") as [i]:
        with T.sp.iteration([J], "S", "first") as [j]:
            Z[i, j] = 1
        with T.sp.iteration([J], "S", "second") as [k]:
            with T.init():
                Y[k] = 0
            Y[k] = Y[k] + 1
"""
MEETING = """
@T.prim_func
def main(y: T.handle, indptr_j: T.handle, n0: T.int64, n1: T.int64, n2: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_varied(I, n1, indptr_j)
    K = T.sp.dense_fixed(n2)
    Y = T.sp.match_buffer(y, (K,), "int32")
    with T.sp.iteration([I, K, J], "SSR", "step") as [i, k, j]:
        with T.init():
            Y[k] = 0
        Y[k] = Y[k] + 1
"""
ROWS = """
@T.prim_func
def main(x: T.handle, y: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_fixed(n1)
    X = T.sp.match_buffer(x, (I,), "int32")
    Y = T.sp.match_buffer(y, (I, J), "int32")
    with T.sp.iteration([I], "S", "outer") as [i]:
        with T.sp.iteration([J], "S", "inner") as [j]:
            Y[i, j] = X[i]
"""

FOUND = {
    "an init stays before all iterations of a reduction that leaves a block": (
        RAGGED,
        {"y": np.full(3, 7, I32), "indptr_j": np.array([0, 2, 2, 3], I32), "n0": 3, "n1": 3},
        {"position": (Step("lift_loop", {"loop": "j"}),)},
    ),
    "an init of one element for all outer iterations becomes no assignment in each": (
        BESIDE,
        {"y": np.full(2, 7, I32), "z": np.zeros(6, I32), "n0": 3, "n1": 2},
        {
            "coordinate": (
                Step("sparse_compute_at", {"iteration": "first", "into": "second", "var": "k"}),
            )
        },
    ),
    "nothing is searched for behind the last fibre": (
        SLOTTED,
        {
            "y": np.zeros(3, I32), "b": np.arange(6, dtype=I32),
            "indices_m": np.array([0, 1, 1, 2, 4, 5], I32), "n0": 3, "n1": 2,
        },
        {
            "loop": (
                Step("prefetch", {"block": "step", "buffer": "B_data", "loop": "k", "distance": 4}),
            )
        },
    ),
    "an element that a reduction selects is initialised where the rest of it is empty": (
        MEETING,
        {"y": np.full(2, 7, I32), "indptr_j": np.zeros(4, I32), "n0": 3, "n1": 3, "n2": 2},
        {"position": (Step("fuse", {"loops": ("k", "j")}),)},
    ),
    "what each iteration allocates is not asked for in an earlier one": (
        ROWS,
        {"x": np.arange(3, dtype=I32), "y": np.zeros(12, I32), "n0": 3, "n1": 4},
        {
            "loop": (
                Step("cache_read", {"block": "inner", "buffer": "X_data", "scope": "local"}),
                Step("compute_at", {"block": "inner_X_data_local", "loop": "j"}),
                Step("split", {"loop": "j", "factors": (None, 3)}),
                Step("prefetch", {"block": "inner", "buffer": "X_data_local", "loop": "j_0",
                                  "distance": 1}),
            )
        },
    ),
    "iterations that run at once share no cache": (
        ROWS,
        {"x": np.arange(3, dtype=I32), "y": np.zeros(12, I32), "n0": 3, "n1": 4},
        {
            "loop": (
                Step("parallel", {"loop": "i"}),
                Step("reindex_cache_read", {"block": "inner", "buffer": "X_data",
                                            "scope": "local"}),
            )
        },
    ),
}  # fmt: skip
"""Scripts, what they are called with, and steps by stage."""


@pytest.mark.parametrize("name", FOUND)
def test_steps_that_were_found_to_be_wrong_are_not(name):
    text, values, traces = FOUND[name]
    arrays = {key: value for key, value in values.items() if isinstance(value, np.ndarray)}
    sizes = {key: value for key, value in values.items() if key not in arrays}
    program = Program(parse_module(text), arrays, sizes)
    verdict = judged(program, native=True, schedule=partial(kept, traces))
    assert verdict.disagreement is None
