"""Attention over a mask of blocks in BSR: scores, softmax and values of one row of blocks at a time.

    OUT = softmax(Q K^T / sqrt(width)) V, where the softmax of a row is over the blocks that the mask stores

The published programs for sparse attention are those for scores and values (Ye and others, ASPLOS 2023,
section 4.3.1), which store all scores. Here all steps of a row of blocks run together, so scores stay in the
cache. They are stored transposed: the rows of a block are the lanes of vectors in every step but the last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import gossamer as gs
from examples.example import Call, Example, random_array
from examples.torch_baseline import torch_call
from gossamer_schedule import ScheduleBuilder
from gossamer_support.arrays import Array

SCRIPT = """
@T.prim_func
def block_sparse_attention(
    q: T.handle, k: T.handle, v: T.handle, out: T.handle, indptr: T.handle, indices: T.handle,
    heads: T.int64, rows: T.int64, columns: T.int64, blocks: T.int64, size: T.int64,
    width: T.int64, scale: T.float32,
) -> None:
    T.func_attr({"sparse_tir_level": 2})
    H = T.sp.dense_fixed(heads)
    I = T.sp.dense_fixed(rows)
    J = T.sp.compressed_varied(I, (columns, blocks), (indptr, indices), "int32")
    N = T.sp.dense_fixed(columns)
    BI = T.sp.dense_fixed(size)
    BJ = T.sp.dense_fixed(size)
    F = T.sp.dense_fixed(width)
    Q = T.sp.match_buffer(q, (H, I, BI, F), "float32")
    K = T.sp.match_buffer(k, (H, N, BJ, F), "float32")
    V = T.sp.match_buffer(v, (H, N, BJ, F), "float32")
    OUT = T.sp.match_buffer(out, (H, I, BI, F), "float32")
    QT = T.sp.alloc_buffer((H, I, F, BI), "float32")
    S = T.sp.alloc_buffer((H, I, J, BJ, BI), "float32")
    P = T.sp.alloc_buffer((H, I, J, BJ, BI), "float32")
    MOST = T.sp.alloc_buffer((H, I, BI), "float32")
    TOTAL = T.sp.alloc_buffer((H, I, BI), "float32")
    SUM = T.sp.alloc_buffer((H, I, BI, F), "float32")
    with T.sp.iteration([H, I, F, BI], "SSSS", "transpose") as [h, i, f, bi]:
        QT[h, i, f, bi] = Q[h, i, bi, f] * scale
    with T.sp.iteration([H, I, J, BJ, BI, F], "SSSSSR", "scores") as [h, i, j, bj, bi, f]:
        with T.init():
            S[h, i, j, bj, bi] = 0.0
        S[h, i, j, bj, bi] = S[h, i, j, bj, bi] + QT[h, i, f, bi] * K[h, j, bj, f]
    with T.sp.iteration([H, I, J, BJ, BI], "SSRRS", "most") as [h, i, j, bj, bi]:
        with T.init():
            MOST[h, i, bi] = T.float32("-inf")
        MOST[h, i, bi] = T.max(MOST[h, i, bi], S[h, i, j, bj, bi])
    with T.sp.iteration([H, I, J, BJ, BI], "SSSSS", "powers") as [h, i, j, bj, bi]:
        P[h, i, j, bj, bi] = T.exp(S[h, i, j, bj, bi] - MOST[h, i, bi])
    with T.sp.iteration([H, I, J, BJ, BI], "SSRRS", "total") as [h, i, j, bj, bi]:
        with T.init():
            TOTAL[h, i, bi] = 0.0
        TOTAL[h, i, bi] = TOTAL[h, i, bi] + P[h, i, j, bj, bi]
    with T.sp.iteration([H, I, J, BJ, BI, F], "SSRRSS", "values") as [h, i, j, bj, bi, f]:
        with T.init():
            SUM[h, i, bi, f] = 0.0
        SUM[h, i, bi, f] = SUM[h, i, bi, f] + P[h, i, j, bj, bi] * V[h, j, bj, f]
    with T.sp.iteration([H, I, BI, F], "SSSS", "quotients") as [h, i, bi, f]:
        OUT[h, i, bi, f] = T.Select(
            TOTAL[h, i, bi] > 0.0, SUM[h, i, bi, f] / TOTAL[h, i, bi], 0.0
        )
"""

LANES = 16
ROWS, TILE = 8, 2
"""Rows of a tile of values, and vectors."""


class Attention(NamedTuple):
    """Queries, keys and values (heads by positions by width), and the mask of blocks."""

    q: Array
    k: Array
    v: Array
    mask: sparse.csr_matrix
    size: int

    @property
    def scale(self) -> float:
        """The factor of scores."""
        return float(np.float32(1 / np.sqrt(max(1, self.q.shape[2]))))


def schedule(sizes: dict[str, int]) -> ScheduleBuilder:
    """Return the schedule of `SCRIPT`: all steps of a row of blocks in one loop, which runs in parallel."""
    sch = gs.schedule(SCRIPT, specialize=sizes).lower().lower()
    head, row, *_ = sch.get_loops("quotients")
    _, scores_copy, *_ = sch.cache_write("scores", buffer="S_data", scope="local").names
    _, values_copy, *_ = sch.cache_write("values", buffer="SUM_data", scope="local").names
    row_blocks = ("values", "total", "powers", "most", scores_copy, "scores", "transpose")
    for block in (values_copy, *row_blocks):
        sch.compute_at(block, loop=row)
    schedule_scores(sch, "scores", copy=scores_copy)
    for block in ("most", "total"):
        schedule_reduction(sch, block)
    schedule_values(sch, "values", copy=values_copy)
    for block in ("transpose", "powers", "quotients"):
        sch.vectorize(sch.split(sch.get_loops(block)[-1], factors=(None, LANES)).names[1])
    return sch.parallel(sch.fuse(head, row).names[0])


def schedule_scores(sch: ScheduleBuilder, scores: str, *, copy: str) -> None:
    """Schedule the scores of a block, and their copy: one vector of rows for each column, in registers."""
    column, inner = sch.get_loops(copy)[-2:]
    tile, lane = sch.split(inner, factors=(None, LANES)).names
    sch.reorder(tile, column, lane)
    sch.compute_at(scores, loop=tile)
    column_of, row_of, feature = sch.get_loops(scores)[-3:]
    sch.reorder(feature, column_of, row_of)
    init, *_ = sch.decompose_reduction(scores, loop=feature).names
    for block in (copy, scores, init):
        column, lane = sch.get_loops(block)[-2:]
        sch.unroll(column).vectorize(lane)


def schedule_reduction(sch: ScheduleBuilder, block_name: str) -> None:
    """Schedule a reduction over the columns of a row of blocks: a vector of rows."""
    position, column, inner = sch.get_loops(block_name)[-3:]
    tile, lane = sch.split(inner, factors=(None, LANES)).names
    sch.reorder(tile, position, column, lane)
    init, *_ = sch.decompose_reduction(block_name, loop=position).names
    sch.vectorize(lane).vectorize(sch.get_loops(init)[-1])


def schedule_values(sch: ScheduleBuilder, values: str, *, copy: str) -> None:
    """Schedule the values, and their copy: a tile of rows and features in registers during the loop over
    blocks."""
    inner, feature = sch.get_loops(copy)[-2:]
    panel, row = sch.split(inner, factors=(None, ROWS)).names
    tile, vector, lane = sch.split(feature, factors=(None, TILE, LANES)).names
    sch.reorder(tile, panel, row, vector, lane)
    sch.compute_at(values, loop=panel)
    position, *_, feature = sch.get_loops(values)[-4:]
    sch.split(feature, factors=(TILE, LANES))
    init, *_ = sch.decompose_reduction(values, loop=position).names
    for block in (copy, values, init):
        row, vector, lane = sch.get_loops(block)[-3:]
        sch.unroll(row).unroll(vector).vectorize(lane)


def fused_call(inputs: Attention) -> Call:
    """Prepare the program."""
    (heads, positions, width), size = inputs.q.shape, inputs.size
    fixed = {"size": size, "width": width}
    kernel = gs.compile(SCRIPT, specialize=fixed, schedule=schedule(fixed))
    blocked = (heads, -1 if positions else 0, size, width)
    q, k, v = (each.reshape(blocked) for each in (inputs.q, inputs.k, inputs.v))
    result = np.empty_like(q)
    run = kernel.bind(
        q=q, k=k, v=v, out=result, indptr=inputs.mask.indptr, indices=inputs.mask.indices,
        columns=k.shape[1], scale=inputs.scale,
    )  # fmt: skip

    def call() -> Array:
        run()
        return result.reshape(inputs.q.shape)

    return call


# --- without gossamer


def numpy_dense(inputs: Attention) -> Call:
    """Return all scores with NumPy, and minus infinity outside of the mask."""
    outside = ~whole_mask(inputs)

    def call() -> Array:
        scores = (inputs.q * np.float32(inputs.scale)) @ inputs.k.swapaxes(1, 2)
        scores[:, outside] = -np.inf
        return softmax_times(scores, inputs.v)

    return call


def softmax_times(scores: Array, values: Array) -> Array:
    """Return the softmax of rows times values; a row without finite scores gives zeros."""
    most = scores.max(axis=2, keepdims=True, initial=-np.inf)
    scores -= np.where(np.isfinite(most), most, 0)
    np.exp(scores, out=scores)
    total = scores.sum(axis=2, keepdims=True)
    product: Array = (scores @ values) / np.where(total > 0, total, 1)
    return product


@torch_call
def torch_dense(torch: Any, inputs: Attention) -> Callable[[], Any]:
    """Return PyTorch's attention with the dense mask."""
    q, k, v = (torch.from_numpy(each)[None] for each in (inputs.q, inputs.k, inputs.v))
    mask = torch.from_numpy(whole_mask(inputs))
    attention = torch.nn.functional.scaled_dot_product_attention

    def call() -> Any:
        return torch.nan_to_num(attention(q, k, v, attn_mask=mask, scale=inputs.scale)[0])

    return call


@torch_call
def torch_blocks(torch: Any, inputs: Attention) -> Callable[[], Any]:
    """Return batched products of gathered blocks, padded to the longest row of blocks, with PyTorch."""
    heads, positions, width = inputs.q.shape
    lengths = np.diff(inputs.mask.indptr)
    longest, count = int(lengths.max(initial=0)), len(lengths)
    used = np.arange(longest) < lengths[:, None]
    columns = np.zeros((count, longest), np.int64)
    columns[used] = inputs.mask.indices
    gathered, is_used = torch.from_numpy(columns), torch.from_numpy(used)
    is_column = is_used[:, :, None].expand(-1, -1, inputs.size).reshape(count, 1, -1)
    q, k, v = (
        torch.from_numpy(each).reshape(heads, -1 if positions else 0, inputs.size, width)
        for each in (inputs.q, inputs.k, inputs.v)
    )

    def call() -> Any:
        keys, values = (each[:, gathered].reshape(heads, count, -1, width) for each in (k, v))
        scores = (q * inputs.scale) @ keys.transpose(2, 3)
        weights = torch.softmax(scores.masked_fill(~is_column, float("-inf")), dim=3)
        return torch.nan_to_num(weights @ values).reshape(heads, positions, width)

    return call


# --- inputs


def whole_mask(inputs: Attention) -> Array:
    """Return the mask of positions."""
    blocks = inputs.mask.toarray().astype(bool)
    return blocks.repeat(inputs.size, axis=0).repeat(inputs.size, axis=1)


def oracle(inputs: Attention) -> Array:
    """Return attention in float64, head by head."""
    outside, result = ~whole_mask(inputs), np.zeros(inputs.q.shape)
    for head, (q, k, v) in enumerate(zip(inputs.q, inputs.k, inputs.v, strict=True)):
        scores = (q.astype(np.float64) * inputs.scale) @ k.astype(np.float64).T
        scores[outside] = -np.inf
        result[head] = softmax_times(scores[None], v[None].astype(np.float64))[0]
    return result


def magnitude(inputs: Attention) -> Array:
    """Return the scale of errors: the error of a score multiplies all weights of its row."""
    largest = np.abs(inputs.v).max(initial=0)
    score = np.abs(inputs.q).sum(axis=2).max(initial=0) * np.abs(inputs.k).max(initial=0)
    scale: Array = np.full(inputs.q.shape, largest * (1 + score * inputs.scale))
    return scale


def terms(inputs: Attention) -> int:
    """Return the most roundings: of a score, of its power, and of a sum over a row."""
    longest = int(np.diff(inputs.mask.indptr).max(initial=0))
    return longest * inputs.size + int(inputs.q.shape[2])


def attention_over(mask: sparse.csr_matrix, *, heads: int, size: int, width: int) -> Attention:
    """Return random queries, keys and values for a mask of blocks."""
    rows, columns = mask.shape
    mask = sparse.csr_matrix(mask.astype(np.float32))
    mask.indptr, mask.indices = (each.astype(np.int32) for each in (mask.indptr, mask.indices))
    q = random_array(heads, rows * size, width, seed=1)
    k, v = (random_array(heads, columns * size, width, seed=seed) for seed in (2, 3))
    return Attention(q, k, v, mask, size)


def random_mask(rows: int, density: float) -> sparse.csr_matrix:
    """Return a random square mask with a full row of blocks and an empty one."""
    mask = np.random.default_rng(rows).random((rows, rows)) < density
    if rows > 3:
        mask[1], mask[3] = True, False
    return sparse.csr_matrix(mask)


def longformer(rows: int, reach: int) -> sparse.csr_matrix:
    """Return a band of blocks, `reach` to each side of the diagonal (Beltagy and others, 2020)."""
    at = np.arange(rows)
    return sparse.csr_matrix(np.abs(at[:, None] - at) <= reach)


def butterfly(rows: int) -> sparse.csr_matrix:
    """Return the blocks whose numbers differ in one bit, and the diagonal (Chen and others, "Pixelated
    Butterfly", 2022)."""
    at = np.arange(rows)
    differ = at[:, None] ^ at
    return sparse.csr_matrix((differ & (differ - 1)) == 0)


EXAMPLE = Example(
    "block_sparse_attention",
    cases={
        "random": lambda: attention_over(random_mask(6, 0.4), heads=2, size=16, width=64),
        "small blocks": lambda: attention_over(random_mask(5, 0.4), heads=1, size=4, width=7),
        "odd sizes": lambda: attention_over(random_mask(4, 0.5), heads=3, size=5, width=19),
        "no blocks": lambda: attention_over(random_mask(3, 0.0), heads=1, size=4, width=8),
    },
    datasets={
        "longformer": lambda: attention_over(longformer(256, 8), heads=4, size=16, width=64),
        "butterfly": lambda: attention_over(butterfly(256), heads=4, size=16, width=64),
    },
    oracle=oracle,
    magnitude=magnitude,
    terms=terms,
    programs={"fused": fused_call},
    baselines={
        "numpy_dense": numpy_dense, "torch_dense": torch_dense, "torch_blocks": torch_blocks,
    },
)  # fmt: skip
