"""Sums over segments of outer products of gathered rows, in one kernel: the gradients of segments' matrices.

Products of a segment are in chunks, which are computed in parallel and added afterwards. The sum of a chunk
is computed in groups, whose rows stay in the first-level cache while each tile of the sum is in registers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch

import gossamer as gs
from gossamer.internal_api import DEFAULT_TARGET, machine_for
from gossamer_backend import Kernel
from gossamer_schedule import ScheduleBuilder
from gossamer_support.arrays import Array
from gossamer_torch.custom_ops.segments.grouped_sums import MAX_GROUPED_KERNELS
from gossamer_torch.numpy_views import shared_array

CHUNK_PRODUCTS = 2048
"""The most products of a chunk: its sum is small beside the rows that it is computed from."""
_GROUP_BYTES = 1 << 14
"""Bytes of the rows of a group, half of the first-level cache of most processors."""
_SUM_BYTES = 1 << 23
"""Bytes of the sums of chunks that are computed before they are added."""
_TILE_ROWS, _TILE_VECTORS = 4, 2
"""The tile of a sum: with AVX2 it fills half of the registers."""

_SCRIPT = """
@T.prim_func
def grouped_outer_products(
    chunk_indptr: T.handle, indptr: T.handle, rows: T.handle, columns: T.handle,
    x: T.handle, y: T.handle, w: T.handle,
    chunks: T.int64, groups: T.int64, products: T.int64, longest: T.int64,
    m: T.int64, n: T.int64, features: T.int64, outputs: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 2})
    C = T.sp.dense_fixed(chunks)
    G = T.sp.dense_varied(C, (longest, groups), chunk_indptr, "int32")
    I = T.sp.compressed_varied(
        G, (m, products), (indptr, rows), "int32", sorted=False, unique=False
    )
    J = T.sp.compressed_fixed(I, (n, 1), columns, "int32", padded=False)
    I_detach = T.sp.dense_fixed(m)
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(features)
    L = T.sp.dense_fixed(outputs)
    X = T.sp.match_buffer(x, (J_detach, K), "float32")
    Y = T.sp.match_buffer(y, (I_detach, L), "float32")
    W = T.sp.match_buffer(w, (C, K, L), "float32")
    Sum = T.sp.alloc_buffer((C, G, K, L), "float32")
    with T.sp.iteration([C, G, I, J, K, L], "SSRRSS", "multiply") as [c, g, i, j, k, l]:
        with T.init():
            Sum[c, g, k, l] = 0.0
        Sum[c, g, k, l] = Sum[c, g, k, l] + X[j, k] * Y[i, l]
    with T.sp.iteration([C, G, K, L], "SRSS", "add") as [c, g_add, k_add, l_add]:
        W[c, k_add, l_add] = W[c, k_add, l_add] + Sum[c, g_add, k_add, l_add]
"""


class OuterProductGroups(NamedTuple):
    """Products in groups, and these in chunks: where the groups of each chunk and the products of each group
    begin, for each product its row of y and its row of x, and for each chunk its segment."""

    chunk_indptr: Array
    indptr: Array
    rows: Array
    columns: Array
    segments: Array


def rows_of_group(row_bytes: int) -> int:
    """Return the number of products of a group whose rows, of x and of y, have this many bytes.

    >>> rows_of_group(256), rows_of_group(1 << 20)
    (64, 16)
    """
    return max(16, _GROUP_BYTES // row_bytes)


def outer_products_in_groups(
    bounds: Array, targets: Array, sources: Array, *, group_rows: int
) -> OuterProductGroups:
    """Return the groups of products, whose segments have these bounds, with their rows of y and of x.
    `group_rows` is the number of products of a group; the last one of a chunk may have fewer.

    >>> numbers = np.array([0, 1, 2])
    >>> groups = outer_products_in_groups(np.array([0, 2, 2, 3]), numbers, numbers, group_rows=1)
    >>> groups.segments, groups.chunk_indptr, groups.indptr
    (array([0, 2]), array([0, 2, 3], dtype=int32), array([0, 1, 2, 3], dtype=int32))
    """
    chunks = split_ranges(bounds, CHUNK_PRODUCTS)
    groups = split_ranges(chunks.bounds, group_rows)
    counts = np.bincount(groups.origins, minlength=chunks.origins.size)
    return OuterProductGroups(
        chunk_indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        indptr=groups.bounds.astype(np.int32),
        rows=targets.astype(np.int32),
        columns=sources.astype(np.int32),
        segments=chunks.origins,
    )


class SplitRanges(NamedTuple):
    """Parts of ranges, one after the other: their bounds, and for each part the number of its range."""

    bounds: Array
    origins: Array


def split_ranges(bounds: Array, most: int) -> SplitRanges:
    """Return the parts of ranges with these bounds, of at most `most` elements each. Empty ranges have no
    part.

    >>> split_ranges(np.array([0, 5, 5, 6]), 2)
    SplitRanges(bounds=array([0, 2, 4, 5, 6]), origins=array([0, 0, 0, 2]))
    """
    counts = -(-np.diff(bounds) // most)
    origins = np.repeat(np.arange(counts.size), counts)
    numbers = np.arange(origins.size) - (np.cumsum(counts) - counts)[origins]
    starts = bounds[origins] + numbers * most
    return SplitRanges(np.append(starts, bounds[-1]), origins)


def sums_of_outer_products(
    x: torch.Tensor, y: torch.Tensor, groups: OuterProductGroups, segments: int
) -> torch.Tensor:
    """Return for each segment the sum of the products of its chunks: columns of x by columns of y."""
    features, outputs = x.shape[1], y.shape[1]
    result = x.new_zeros((segments, features, outputs))
    chunks = groups.segments.size
    if not result.numel() or not chunks:
        return result
    sums, x_rows, y_rows = result.numpy(), shared_array(x), shared_array(y)
    if np.array_equal(groups.segments, np.arange(segments)):
        _add_outer_products(x_rows, y_rows, groups, sums)
        return result
    count = max(1, _SUM_BYTES // sums[0].nbytes)
    for start in range(0, chunks, count):
        end = min(start + count, chunks)
        chunk_sums = np.zeros((end - start, features, outputs), sums.dtype)
        _add_outer_products(x_rows, y_rows, _groups_of_chunks(groups, start, end), chunk_sums)
        # Chunks are in the order of their segments.
        numbers = groups.segments[start:end]
        first = np.flatnonzero(np.diff(numbers, prepend=-1))
        sums[numbers[first]] += np.add.reduceat(chunk_sums, first)
    return result


def _groups_of_chunks(groups: OuterProductGroups, start: int, end: int) -> OuterProductGroups:
    """Return the groups of some chunks."""
    chunk_indptr = groups.chunk_indptr[start : end + 1]
    indptr = groups.indptr[chunk_indptr[0] : chunk_indptr[-1] + 1]
    products = slice(indptr[0], indptr[-1])
    return OuterProductGroups(
        chunk_indptr - chunk_indptr[0],
        indptr - indptr[0],
        groups.rows[products],
        groups.columns[products],
        groups.segments[start:end],
    )


def _add_outer_products(x: Array, y: Array, groups: OuterProductGroups, sums: Array) -> None:
    """Add the products of each chunk to its sum."""
    _, features, outputs = sums.shape
    _kernel(str(sums.dtype), features, outputs)(
        chunk_indptr=groups.chunk_indptr,
        indptr=groups.indptr,
        rows=groups.rows,
        columns=groups.columns,
        x=x,
        y=y,
        w=sums,
        longest=int(np.diff(groups.chunk_indptr).max()),
    )


@lru_cache(maxsize=MAX_GROUPED_KERNELS)
def _kernel(dtype: str, features: int, outputs: int) -> Kernel:
    sizes = {"features": features, "outputs": outputs}
    dtypes = dict.fromkeys(("X", "Y", "W", "Sum"), dtype)
    lanes = machine_for(DEFAULT_TARGET).lanes(dtype)
    builder = gs.schedule(_SCRIPT, specialize=sizes, dtypes=dtypes)
    schedule = _schedule(builder, lanes)
    return gs.compile(_SCRIPT, specialize=sizes, dtypes=dtypes, schedule=schedule)


def _schedule(builder: ScheduleBuilder, lanes: int) -> ScheduleBuilder:
    """Return the schedule: a tile of the sum is in registers during the loop over the products of a group,
    and is then added to the sum of the chunk."""
    sch = builder.lower().lower()
    chunk, _, product, column_of_x, k, column = sch.get_loops("multiply")
    k_tile, k_row = sch.split(k, factors=(None, _TILE_ROWS)).names
    tile, vector, lane = sch.split(column, factors=(None, _TILE_VECTORS, lanes)).names
    sch.reorder(k_tile, tile, product, column_of_x, k_row, vector, lane)
    sch.reverse_compute_at("add", loop=tile)
    sch.set_scope("Sum_data", scope="local")
    product_init, *_ = sch.decompose_reduction("multiply", loop=product).names
    sch.split(sch.get_loops("add")[-1], factors=(_TILE_VECTORS, lanes))
    for block in (product_init, "multiply", "add"):
        tile_row, vector, lane = sch.get_loops(block)[-3:]
        sch.unroll(tile_row).unroll(vector).vectorize(lane)
    return sch.parallel(chunk)
