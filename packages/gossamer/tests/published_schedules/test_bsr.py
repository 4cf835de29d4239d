"""BSR times dense as published: one micro-kernel computes a tile of a block and of the features."""

from __future__ import annotations

from typing import Any

import numpy as np
from stepwise_schedules import integers, require_schedule, step

from gossamer_ir.script import parse_module
from gossamer_testkit import script

BLOCK_BY_BLOCK = (step("sparse_reorder", "bsrmm", order=("i", "j", "bi", "f", "bj")),)
TILES = (
    step("split", "bi", factors=(None, 4)),
    step("split", "bj", factors=(None, 8)),
    step("split", "f", factors=(None, 2, 16)),
    step("reorder", "f_0", "j", "bi_0", "f_1", "bj_0", "bi_1", "f_2", "bj_1"),
    step("cache_write", "bsrmm", buffer="C_data", scope="local"),
    step("reverse_compute_at", "bsrmm_C_data_local", loop="f_0"),
    step("decompose_reduction", "bsrmm", loop="j"),
    step("reindex_cache_read", "bsrmm", buffer="B_data", scope="local", order=("vj", "vbj", "vf")),
    step("compute_at", "bsrmm_B_data_local", loop="f_1"),
    step("tensorize", "bi_1", intrinsic="outer_product_float32_4x16"),
    step("parallel", "i"),
)


def case(pattern: Any, size: int, features: int) -> Any:
    """Blocks of one size at the places of a pattern."""
    random = np.random.default_rng(size)
    rows, columns = pattern.nonzero()
    indptr = np.concatenate([[0], np.bincount(rows, minlength=len(pattern)).cumsum()])
    a = integers(random, len(rows), size, size)
    b = integers(random, pattern.shape[1], size, features)
    c = np.zeros((len(pattern), size, features), np.float32)
    np.add.at(c, rows, a @ b[columns])
    arguments = {
        "a": a, "b": b, "c": np.full_like(c, 77), "indptr": indptr.astype(np.int32),
        "indices": columns.astype(np.int32), "nb": len(pattern), "mb": pattern.shape[1],
        "nnzb": len(rows), "blk": size, "feat_size": features,
    }  # fmt: skip
    return arguments, {"c": c}


EMPTY_ENDS = (np.arange(15).reshape(5, 3) % 2 == 0) & (np.arange(5) % 4 > 0)[:, None]
TWO_BLOCKS = np.array([[True, False, True]])
CASES = [
    (np.zeros((0, 3), bool), 4, 16),
    (np.zeros((2, 0), bool), 4, 16),
    (EMPTY_ENDS, 1, 17),
    (EMPTY_ENDS, 4, 32),
    (TWO_BLOCKS, 9, 33),
    (EMPTY_ENDS, 8, 0),
]


def test_a_tensorized_block():
    module = parse_module(script("bsr_spmm"))
    cases = [case(*parameters) for parameters in CASES]
    require_schedule(module, cases, coordinate=BLOCK_BY_BLOCK, loop=TILES)
