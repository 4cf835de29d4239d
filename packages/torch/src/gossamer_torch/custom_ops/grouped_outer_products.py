"""Sums over segments of outer products of gathered rows, in one kernel: the gradients of segments' matrices.

Products of a segment are in groups. The rows of a group are gathered into a small dense matrix, and the sum
of its products is a product of dense matrices, whose tiles are in registers. Groups are computed in parallel;
those of a segment are added afterwards.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch

import gossamer as gs
from gossamer_backend import Kernel
from gossamer_ir.support.arrays import Array
from gossamer_schedule import ScheduleBuilder
from gossamer_torch.custom_ops.grouped_products import (
    MAX_GROUPED_KERNELS,
    gather_in_vectors,
    vector_bytes,
)
from gossamer_torch.numpy_views import dtype_name_of, shared_array

_GROUP_ROWS = 128
"""Products of a group: their rows stay in the caches of a processor, and their sum is small beside them."""
_SUM_BYTES = 1 << 23
"""Bytes of the sums of groups that are computed before they are added."""
_TILE_ROWS, _TILE_VECTORS = 4, 2
"""The tile of a sum: with AVX2 it fills half of the registers."""

_SCRIPT = """
@T.prim_func
def grouped_outer_products(
    rows: T.handle, columns: T.handle, x: T.handle, y: T.handle, w: T.handle,
    groups: T.int64, m: T.int64, n: T.int64,
    group_rows: T.int64, features: T.int64, outputs: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 2})
    G = T.sp.dense_fixed(groups)
    I = T.sp.compressed_fixed(
        G, (m, group_rows), rows, "int32", sorted=False, unique=False, padded=False
    )
    J = T.sp.compressed_fixed(I, (n, 1), columns, "int32")
    I_detach = T.sp.dense_fixed(m)
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(features)
    L = T.sp.dense_fixed(outputs)
    X = T.sp.match_buffer(x, (J_detach, K), "float32")
    Y = T.sp.match_buffer(y, (I_detach, L), "float32")
    W = T.sp.match_buffer(w, (G, K, L), "float32")
    Rows = T.sp.alloc_buffer((G, I, K), "float32")
    with T.sp.iteration([G, I, J, K], "SSRS", "gather") as [g, i, j, k]:
        with T.init():
            Rows[g, i, k] = 0.0
        Rows[g, i, k] = Rows[g, i, k] + X[j, k]
    with T.sp.iteration([G, I, K, L], "SRSS", "multiply") as [g, i, k, l]:
        with T.init():
            W[g, k, l] = 0.0
        W[g, k, l] = W[g, k, l] + Rows[g, i, k] * Y[i, l]
"""


class OuterGroups(NamedTuple):
    """Groups of products: for each product of a group its row of y and its row of x, and for each group its
    segment. Places without a product have a row of a product, and the row n of x."""

    rows: Array
    columns: Array
    segments: Array


def outer_products_in_groups(
    bounds: Array, targets: Array, sources: Array, *, columns: int
) -> OuterGroups:
    """Return the groups of products, whose segments have these bounds, with their rows of y and of x. x has
    `columns` rows.

    >>> numbers = np.array([0, 1, 2])
    >>> groups = outer_products_in_groups(np.array([0, 2, 2, 3]), numbers, numbers, columns=3)
    >>> groups.segments, groups.columns[:, :3, 0].tolist()
    (array([0, 2]), [[0, 1, 3], [2, 3, 3]])
    """
    lengths = np.diff(bounds)
    groups = -(-lengths // _GROUP_ROWS)
    segments = np.repeat(np.arange(lengths.size), groups)
    first_group = np.cumsum(groups) - groups
    starts = (np.arange(segments.size) - first_group[segments]) * _GROUP_ROWS
    numbers = starts[:, None] + np.arange(_GROUP_ROWS)
    of_group = lengths[segments][:, None]
    chosen = np.minimum(numbers, of_group - 1) + bounds[segments][:, None]
    return OuterGroups(
        rows=targets[chosen].astype(np.int32),
        columns=np.where(numbers < of_group, sources[chosen], columns).astype(np.int32)[..., None],
        segments=segments,
    )


def sums_of_outer_products(
    x: torch.Tensor, y: torch.Tensor, groups: OuterGroups, segments: int
) -> torch.Tensor:
    """Return for each segment the sum of the products of its groups: columns of x by columns of y."""
    features, outputs = x.shape[1], y.shape[1]
    result = x.new_zeros((segments, features, outputs))
    if not result.numel() or not groups.segments.size:
        return result
    kernel, sums = _kernel(dtype_name_of(x), features, outputs), result.numpy()
    count = max(1, _SUM_BYTES // sums[0].nbytes)
    of_groups = np.empty((min(count, groups.segments.size), features, outputs), sums.dtype)
    x_rows, y_rows = shared_array(x), shared_array(y)
    for start in range(0, groups.segments.size, count):
        chosen = slice(start, start + count)
        numbers = groups.segments[chosen]
        w = of_groups[: numbers.size]
        rows, columns = groups.rows[chosen], groups.columns[chosen]
        kernel(rows=rows, columns=columns, x=x_rows, y=y_rows, w=w)
        # Groups are in the order of their segments.
        first = np.flatnonzero(np.diff(numbers, prepend=-1))
        sums[numbers[first]] += np.add.reduceat(w, first)
    return result


@lru_cache(maxsize=MAX_GROUPED_KERNELS)
def _kernel(dtype: str, features: int, outputs: int) -> Kernel:
    sizes = {"group_rows": _GROUP_ROWS, "features": features, "outputs": outputs}
    dtypes = dict.fromkeys(("X", "Y", "W", "Rows"), dtype)
    lanes = vector_bytes() // np.dtype(dtype).itemsize
    builder = gs.schedule(_SCRIPT, specialize=sizes, dtypes=dtypes)
    schedule = _schedule(builder, lanes)
    return gs.compile(_SCRIPT, specialize=sizes, dtypes=dtypes, schedule=schedule)


def _schedule(builder: ScheduleBuilder, lanes: int) -> ScheduleBuilder:
    """Return the schedule: a group is gathered at a time. A tile of the sum of its products is in registers
    during the loop over its rows."""
    sch = builder.lower().lower()
    g, row, k, column = sch.get_loops("multiply")
    k_tile, k_row = sch.split(k, factors=(None, _TILE_ROWS)).names
    tile, vector, lane = sch.split(column, factors=(None, _TILE_VECTORS, lanes)).names
    sch.reorder(k_tile, tile, row, k_row, vector, lane)
    _, stored, *_ = sch.cache_write("multiply", buffer="W_data", scope="local").names
    sch.reverse_compute_at(stored, loop=tile)
    product_init, *_ = sch.decompose_reduction("multiply", loop=row).names
    gather_in_vectors(sch, g, lanes)
    sch.split(sch.get_loops(stored)[-1], factors=(_TILE_VECTORS, lanes))
    for block in (product_init, "multiply", stored):
        tile_row, vector, lane = sch.get_loops(block)[-3:]
        sch.unroll(tile_row).unroll(vector).vectorize(lane)
    return sch.parallel(g)
