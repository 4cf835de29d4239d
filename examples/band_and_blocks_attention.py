"""Attention over a mask in two parts: a band of blocks, and other blocks in BSR (BigBird).

The band is a ragged axis: the columns of row i are consecutive, from `max(i - reach, 0)`, so it stores no
column numbers. (The minimum with the last column only proves that the column exists.) The other blocks are
the global ones and random ones (Zaheer and others, "Big Bird", 2020). The softmax of a row is over both
parts. As in `block_sparse_attention`, all steps of a row of blocks run together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse

import gossamer as gs
from examples import block_sparse_attention as blocks
from examples.block_sparse_attention import LANES, Attention
from examples.example import Call, Example
from gossamer_schedule import ScheduleBuilder
from gossamer_support.arrays import Array

SCRIPT = """
@T.prim_func
def band_and_blocks_attention(
    q: T.handle, k: T.handle, v: T.handle, out: T.handle, band_indptr: T.handle,
    indptr: T.handle, indices: T.handle,
    heads: T.int64, rows: T.int64, in_band: T.int64, blocks: T.int64,
    reach: T.int64, size: T.int64, width: T.int64, scale: T.float32,
) -> None:
    T.func_attr({"sparse_tir_level": 2})
    H = T.sp.dense_fixed(heads)
    I = T.sp.dense_fixed(rows)
    D = T.sp.dense_varied(I, (2 * reach + 1, in_band), band_indptr, "int32")
    J = T.sp.compressed_varied(I, (rows, blocks), (indptr, indices), "int32")
    N = T.sp.dense_fixed(rows)
    BI = T.sp.dense_fixed(size)
    BJ = T.sp.dense_fixed(size)
    F = T.sp.dense_fixed(width)
    Q = T.sp.match_buffer(q, (H, I, BI, F), "float32")
    K = T.sp.match_buffer(k, (H, N, BJ, F), "float32")
    V = T.sp.match_buffer(v, (H, N, BJ, F), "float32")
    OUT = T.sp.match_buffer(out, (H, I, BI, F), "float32")
    QT = T.sp.alloc_buffer((H, I, F, BI), "float32")
    SB = T.sp.alloc_buffer((H, I, D, BJ, BI), "float32")
    PB = T.sp.alloc_buffer((H, I, D, BJ, BI), "float32")
    S = T.sp.alloc_buffer((H, I, J, BJ, BI), "float32")
    P = T.sp.alloc_buffer((H, I, J, BJ, BI), "float32")
    MAX_B = T.sp.alloc_buffer((H, I, BI), "float32")
    MAX_J = T.sp.alloc_buffer((H, I, BI), "float32")
    MOST = T.sp.alloc_buffer((H, I, BI), "float32")
    TOTAL_B = T.sp.alloc_buffer((H, I, BI), "float32")
    TOTAL_J = T.sp.alloc_buffer((H, I, BI), "float32")
    SUM_B = T.sp.alloc_buffer((H, I, BI, F), "float32")
    SUM_J = T.sp.alloc_buffer((H, I, BI, F), "float32")
    with T.sp.iteration([H, I, F, BI], "SSSS", "transpose") as [h, i, f, bi]:
        QT[h, i, f, bi] = Q[h, i, bi, f] * scale
    with T.sp.iteration([H, I, D, BJ, BI, F], "SSSSSR", "band_scores") as [h, i, d, bj, bi, f]:
        with T.init():
            SB[h, i, d, bj, bi] = 0.0
        SB[h, i, d, bj, bi] = (
            SB[h, i, d, bj, bi] + QT[h, i, f, bi] * K[h, T.min(T.max(i - reach, 0) + d, rows - 1), bj, f]
        )
    with T.sp.iteration([H, I, J, BJ, BI, F], "SSSSSR", "block_scores") as [h, i, j, bj, bi, f]:
        with T.init():
            S[h, i, j, bj, bi] = 0.0
        S[h, i, j, bj, bi] = S[h, i, j, bj, bi] + QT[h, i, f, bi] * K[h, j, bj, f]
    with T.sp.iteration([H, I, D, BJ, BI], "SSRRS", "band_most") as [h, i, d, bj, bi]:
        with T.init():
            MAX_B[h, i, bi] = T.float32("-inf")
        MAX_B[h, i, bi] = T.max(MAX_B[h, i, bi], SB[h, i, d, bj, bi])
    with T.sp.iteration([H, I, J, BJ, BI], "SSRRS", "block_most") as [h, i, j, bj, bi]:
        with T.init():
            MAX_J[h, i, bi] = T.float32("-inf")
        MAX_J[h, i, bi] = T.max(MAX_J[h, i, bi], S[h, i, j, bj, bi])
    with T.sp.iteration([H, I, BI], "SSS", "most") as [h, i, bi]:
        MOST[h, i, bi] = T.max(MAX_B[h, i, bi], MAX_J[h, i, bi])
    with T.sp.iteration([H, I, D, BJ, BI], "SSSSS", "band_powers") as [h, i, d, bj, bi]:
        PB[h, i, d, bj, bi] = T.exp(SB[h, i, d, bj, bi] - MOST[h, i, bi])
    with T.sp.iteration([H, I, J, BJ, BI], "SSSSS", "block_powers") as [h, i, j, bj, bi]:
        P[h, i, j, bj, bi] = T.exp(S[h, i, j, bj, bi] - MOST[h, i, bi])
    with T.sp.iteration([H, I, D, BJ, BI], "SSRRS", "band_total") as [h, i, d, bj, bi]:
        with T.init():
            TOTAL_B[h, i, bi] = 0.0
        TOTAL_B[h, i, bi] = TOTAL_B[h, i, bi] + PB[h, i, d, bj, bi]
    with T.sp.iteration([H, I, J, BJ, BI], "SSRRS", "block_total") as [h, i, j, bj, bi]:
        with T.init():
            TOTAL_J[h, i, bi] = 0.0
        TOTAL_J[h, i, bi] = TOTAL_J[h, i, bi] + P[h, i, j, bj, bi]
    with T.sp.iteration([H, I, D, BJ, BI, F], "SSRRSS", "band_values") as [h, i, d, bj, bi, f]:
        with T.init():
            SUM_B[h, i, bi, f] = 0.0
        SUM_B[h, i, bi, f] = (
            SUM_B[h, i, bi, f]
            + PB[h, i, d, bj, bi] * V[h, T.min(T.max(i - reach, 0) + d, rows - 1), bj, f]
        )
    with T.sp.iteration([H, I, J, BJ, BI, F], "SSRRSS", "block_values") as [h, i, j, bj, bi, f]:
        with T.init():
            SUM_J[h, i, bi, f] = 0.0
        SUM_J[h, i, bi, f] = SUM_J[h, i, bi, f] + P[h, i, j, bj, bi] * V[h, j, bj, f]
    with T.sp.iteration([H, I, BI, F], "SSSS", "shares") as [h, i, bi, f]:
        OUT[h, i, bi, f] = (SUM_B[h, i, bi, f] + SUM_J[h, i, bi, f]) / (
            TOTAL_B[h, i, bi] + TOTAL_J[h, i, bi]
        )
"""


class Parts(NamedTuple):
    """Attention over a mask, the reach of its band, and the blocks outside of the band."""

    whole: Attention
    reach: int
    others: sparse.csr_matrix


def schedule(sizes: dict[str, int]) -> ScheduleBuilder:
    """Return the schedule of `SCRIPT`: all steps of a row of blocks in one loop, which runs in parallel."""
    sch = gs.schedule(SCRIPT, specialize=sizes).lower().lower()
    head, row, *_ = sch.get_loops("shares")
    parts = (("band", "SB_data", "SUM_B_data"), ("block", "S_data", "SUM_J_data"))
    copies = {}
    for part, scores, values in parts:
        _, scores_copy, *_ = sch.cache_write(f"{part}_scores", buffer=scores, scope="local").names
        _, values_copy, *_ = sch.cache_write(f"{part}_values", buffer=values, scope="local").names
        copies[part] = scores_copy, values_copy
    for part, (_, values_copy) in copies.items():
        sch.compute_at(values_copy, loop=row).compute_at(f"{part}_values", loop=row)
    for step in ("total", "powers"):
        for part in copies:
            sch.compute_at(f"{part}_{step}", loop=row)
    sch.compute_at("most", loop=row)
    for part, (scores_copy, _) in copies.items():
        for block in (f"{part}_most", scores_copy, f"{part}_scores"):
            sch.compute_at(block, loop=row)
    sch.compute_at("transpose", loop=row)
    for part, (scores_copy, values_copy) in copies.items():
        blocks.schedule_scores(sch, f"{part}_scores", copy=scores_copy)
        blocks.schedule_reduction(sch, f"{part}_most")
        blocks.schedule_reduction(sch, f"{part}_total")
        blocks.schedule_values(sch, f"{part}_values", copy=values_copy)
    for block in ("transpose", "most", "band_powers", "block_powers", "shares"):
        sch.vectorize(sch.split(sch.get_loops(block)[-1], factors=(None, LANES)).names[1])
    return sch.parallel(sch.fuse(head, row).names[0])


def fused_call(inputs: Parts) -> Call:
    """Prepare the program."""
    whole = inputs.whole
    (heads, positions, width), size = whole.q.shape, whole.size
    fixed = {"size": size, "width": width, "reach": inputs.reach}
    kernel = gs.compile(SCRIPT, specialize=fixed, schedule=schedule(fixed))
    blocked = (heads, -1 if positions else 0, size, width)
    q, k, v = (each.reshape(blocked) for each in (whole.q, whole.k, whole.v))
    result = np.empty_like(q)
    rows = q.shape[1]
    at = np.arange(rows)
    lengths = np.minimum(at + inputs.reach + 1, rows) - np.maximum(at - inputs.reach, 0)
    run = kernel.bind(
        q=q, k=k, v=v, out=result, scale=whole.scale,
        band_indptr=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
        indptr=inputs.others.indptr, indices=inputs.others.indices, in_band=int(lengths.sum()),
    )  # fmt: skip

    def call() -> Array:
        run()
        return result.reshape(whole.q.shape)

    return call


def for_whole_mask(prepare: Callable[[Attention], Call]) -> Callable[[Parts], Call]:
    """Return a function that prepares a call for the whole mask."""
    return lambda inputs: prepare(inputs.whole)


def big_bird(rows: int, *, reach: int, full: int, random: int) -> tuple[Array, Array]:
    """Return the masks of the band and of all other blocks: the first rows and columns, and `random` blocks
    of each row."""
    at, rng = np.arange(rows), np.random.default_rng(rows)
    band = np.abs(at[:, None] - at) <= reach
    others = (at < full) | (at < full)[:, None]
    chosen = rng.integers(0, max(rows, 1), (rows, random))
    others[np.repeat(at, random), chosen.reshape(-1)] = True
    return band, others & ~band


def parts_of(
    rows: int, *, reach: int, full: int, random: int, heads: int, size: int, width: int
) -> Parts:
    """Return random queries, keys and values for a mask in two parts."""
    band, others = big_bird(rows, reach=reach, full=full, random=random)
    whole = blocks.attention_over(
        sparse.csr_matrix(band | others), heads=heads, size=size, width=width
    )
    rest = sparse.csr_matrix(others)
    rest.indptr, rest.indices = (each.astype(np.int32) for each in (rest.indptr, rest.indices))
    return Parts(whole, reach, rest)


EXAMPLE = Example(
    "band_and_blocks_attention",
    cases={
        "random": lambda: parts_of(8, reach=1, full=1, random=1, heads=2, size=16, width=64),
        "odd sizes": lambda: parts_of(5, reach=1, full=0, random=2, heads=1, size=5, width=19),
        "band only": lambda: parts_of(6, reach=2, full=0, random=0, heads=1, size=4, width=8),
        "one block": lambda: parts_of(1, reach=3, full=1, random=1, heads=1, size=4, width=8),
    },
    datasets={
        "big_bird": lambda: parts_of(256, reach=1, full=2, random=3, heads=4, size=16, width=64),
    },
    oracle=lambda inputs: blocks.oracle(inputs.whole),
    magnitude=lambda inputs: blocks.magnitude(inputs.whole),
    terms=lambda inputs: blocks.terms(inputs.whole),
    programs={"fused": fused_call, "in_one_part": for_whole_mask(blocks.fused_call)},
    baselines={name: for_whole_mask(prepare) for name, prepare in blocks.EXAMPLE.baselines.items()},
)
