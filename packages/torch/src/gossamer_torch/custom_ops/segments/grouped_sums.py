"""Products of gathered rows with the matrix of their segment, added to rows of the result in one kernel.

Products are sorted by panels of rows of the result, and in these by segment. Groups of products of one
segment are gathered into a small dense matrix, and the product is added while it is in registers, so that
nothing of the size of all products is stored. Panels have rows of their own, and are computed in parallel.
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
from gossamer_torch.counting_sort import counting_order
from gossamer_torch.numpy_views import dtype_name_of, shared_array

_TILE_VECTORS = 2
"""The most vectors of columns of a tile, which has the rows of a group. An element of a row is then loaded
once for two multiplications: 1.3 times as fast with AVX2 as one vector of twice as many rows."""
MAX_PANEL_ROWS = 2048
"""The most rows of a panel of the result, which stays in the second-level cache."""
MIN_PANEL_ROWS = 64
"""The least rows of a panel: with fewer, most groups of a segment have places without a product."""
MAX_MATRIX_BYTES = 1 << 17
"""Bytes of the matrix of a segment that is read from the caches again for each group."""
MAX_GROUPED_KERNELS = 256
"""The number of kernels that are kept, each for a dtype and the sizes of matrices."""

_SCRIPT = """
@T.prim_func
def grouped_products(
    indptr: T.handle, rows: T.handle, columns: T.handle, x: T.handle, w: T.handle, y: T.handle,
    segments: T.int64, m: T.int64, n: T.int64, longest: T.int64, groups: T.int64,
    panel: T.int64, group_rows: T.int64, features: T.int64, outputs: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 2})
    P = T.sp.dense_fixed((m + panel - 1) // panel)
    S = T.sp.dense_fixed(segments, parent=P)
    IO = T.sp.dense_varied(S, (longest, groups), indptr, "int32")
    II = T.sp.compressed_fixed(
        IO, (panel, group_rows), rows, "int32", unique=False
    )
    J = T.sp.compressed_fixed(II, (n, 1), columns, "int32")
    P_detach = T.sp.dense_fixed((m + panel - 1) // panel)
    S_detach = T.sp.dense_fixed(segments)
    I_detach = T.sp.dense_fixed(panel)
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(features)
    L = T.sp.dense_fixed(outputs)
    X = T.sp.match_buffer(x, (J_detach, K), "float32")
    W = T.sp.match_buffer(w, (S_detach, K, L), "float32")
    Y = T.sp.match_buffer(y, (P_detach, I_detach, L), "float32")
    Rows = T.sp.alloc_buffer((P, S, IO, II, K), "float32")
    with T.sp.iteration([P, S, IO, II, J, K], "SSSSRS", "gather") as [p, s, io, ii, j, k]:
        with T.init():
            Rows[p, s, io, ii, k] = 0.0
        Rows[p, s, io, ii, k] = Rows[p, s, io, ii, k] + X[j, k]
    with T.sp.iteration([P, S, IO, II, L, K], "SSSSSR", "multiply") as [p, s, io, ii, l, k]:
        Y[p, ii, l] = Y[p, ii, l] + Rows[p, s, io, ii, k] * W[s, k, l]
"""


class ProductGroups(NamedTuple):
    """Groups of products: where those of each panel and segment begin, and for each product of a group its
    row of the panel and its row of x. Places without a product have the coordinates of padded slots, and are
    not added: their product with a matrix that is not finite would be NaN."""

    indptr: Array
    rows: Array
    columns: Array
    panel: int


def rows_of_panel(rows: int) -> int:
    """Return the number of rows of a panel of a result, of which each thread has at least one unless the
    panels would be too small.

    >>> rows_of_panel(1 << 20), rows_of_panel(3)
    (2048, 3)
    """
    thread_rows = -(-rows // gs.get_num_threads())
    return max(1, min(rows, MAX_PANEL_ROWS, max(thread_rows, MIN_PANEL_ROWS)))


def _group_rows() -> int:
    """Return the number of products of a group: with the vectors of a tile, they fill the accumulators."""
    return max(1, machine_for(DEFAULT_TARGET).accumulators // _TILE_VECTORS)


def products_in_groups(
    segments: Array,
    targets: Array,
    sources: Array,
    *,
    count: int,
    rows: int,
    columns: int,
    panel: int,
) -> ProductGroups:
    """Return the groups of products, with their segments (below `count`), their rows of the result and of x.
    `panel` is the number of rows of a panel.

    >>> numbers = np.array([0, 1])
    >>> products_in_groups(numbers, numbers, numbers, count=2, rows=2, columns=2, panel=1).indptr
    array([0, 1, 1, 1, 2], dtype=int32)
    """
    panels, size = -(-rows // panel), _group_rows()
    keys = (targets // panel).astype(np.int64) * count + segments
    # Products of a panel and a segment are sorted by row.
    by_row = counting_order(targets, rows).order
    by_key = counting_order(keys[by_row], panels * count)
    counts = np.diff(by_key.offsets)
    indptr = np.zeros(panels * count + 1, np.int32)
    np.cumsum(-(-counts // size), out=indptr[1:])
    # Each place takes a product of its group: places after the last product take this one.
    places = np.arange(indptr[-1] * size)
    key_of_place = np.repeat(np.arange(counts.size), np.diff(indptr) * size)
    numbers = places - indptr[key_of_place].astype(np.int64) * size
    chosen = np.minimum(numbers, counts[key_of_place] - 1) + by_key.offsets[key_of_place]
    products = by_row[by_key.order[chosen]]
    is_used = numbers < counts[key_of_place]
    row_of_place = np.where(is_used, targets[products] % panel, panel).astype(np.int32)
    column_of_place = np.where(is_used, sources[products], columns).astype(np.int32)
    return ProductGroups(indptr, row_of_place, column_of_place, panel)


def sums_of_groups(
    x: torch.Tensor, weights: torch.Tensor, groups: ProductGroups, rows: int
) -> torch.Tensor:
    """Return the sums of the products of groups: `rows` by the columns of `weights`."""
    segments, features, outputs = weights.shape
    panels = -(-rows // groups.panel)
    result = x.new_zeros((panels * groups.panel, outputs))
    if result.numel() and features and len(groups.rows):
        kernel = _kernel(dtype_name_of(x), segments, features, outputs)
        kernel(
            indptr=groups.indptr,
            rows=groups.rows,
            columns=groups.columns,
            x=shared_array(x),
            w=shared_array(weights),
            y=result.numpy().reshape(panels, groups.panel, outputs),
            m=rows,
            n=len(x),
            longest=int(np.diff(groups.indptr).max()),
            groups=int(groups.indptr[-1]),
            panel=groups.panel,
        )
    # The last panel may have rows after those of the result.
    return result[:rows]


def has_small_matrices(shape: tuple[int, ...], dtype: torch.dtype) -> bool:
    """Return whether products with the matrices of segments, which have this shape, are computed in groups: a
    large matrix, or the only one, or a vector, is better multiplied by all rows of its segment at once.

    >>> has_small_matrices((2, 64, 64), torch.float32), has_small_matrices((2, 512, 512), torch.float32)
    (True, False)
    """
    _, features, outputs = shape
    matrix = features * outputs * dtype.itemsize
    has_kernel = dtype in (torch.float32, torch.float64) and min(shape) > 1
    return has_kernel and matrix <= MAX_MATRIX_BYTES


@lru_cache(maxsize=MAX_GROUPED_KERNELS)
def _kernel(dtype: str, segments: int, features: int, outputs: int) -> Kernel:
    """Return the kernel, which is specialized for the number of segments and the shape of their matrices."""
    sizes = {"segments": segments, "features": features, "outputs": outputs}
    sizes["group_rows"] = _group_rows()
    dtypes = dict.fromkeys(("X", "W", "Y", "Rows"), dtype)
    lanes = machine_for(DEFAULT_TARGET).lanes(dtype)
    vectors = min(_TILE_VECTORS, -(-outputs // lanes))
    builder = gs.schedule(_SCRIPT, specialize=sizes, dtypes=dtypes)
    schedule = _schedule(builder, segments, vectors=vectors, lanes=lanes)
    return gs.compile(_SCRIPT, specialize=sizes, dtypes=dtypes, schedule=schedule)


def _schedule(
    builder: ScheduleBuilder, segments: int, *, vectors: int, lanes: int
) -> ScheduleBuilder:
    """Return the schedule: a group is gathered and multiplied at a time. A tile of the product, of `vectors`
    of columns, stays in registers during the loop over features, and is then added to the rows of the
    result."""
    sch = builder.lower().lower()
    p, _, io, ii, column, k = sch.get_loops("multiply")
    tile, vector, lane = sch.split(column, factors=(None, vectors, lanes)).names
    sch.reorder(tile, k, ii, vector, lane)
    _, added, *_ = sch.reindex_cache_write("multiply", buffer="Y_data", scope="local").names
    sch.reverse_compute_at(added, loop=tile)
    product_init, *_ = sch.decompose_reduction("multiply", loop=k).names
    _gather_in_vectors(sch, io, lanes)
    sch.split(sch.get_loops(added)[-1], factors=(vectors, lanes))
    for block in (product_init, "multiply", added):
        row, vector, lane = sch.get_loops(block)[-3:]
        sch.unroll(row).unroll(vector).vectorize(lane)
    return sch.parallel(p, weight=f"T.int64(IO_indptr[{p} * {segments}])")


def _gather_in_vectors(sch: ScheduleBuilder, group: str, lanes: int) -> None:
    """Gather the rows of one group at a time, in vectors, in the block `gather`."""
    _, copy, *_ = sch.cache_write("gather", buffer="Rows_data", scope="local").names
    sch.compute_at(copy, loop=group)
    row, copied = sch.get_loops(copy)[-2:]
    sch.compute_at("gather", loop=row)
    j, gathered = sch.get_loops("gather")[-2:]
    k_vector, k_lane = sch.split(gathered, factors=(None, lanes)).names
    sch.reorder(j, k_vector, k_lane)
    sum_init, *_ = sch.decompose_reduction("gather", loop=j).names
    sch.split(copied, factors=(None, lanes))
    for block in (sum_init, "gather", copy):
        vector, lane = sch.get_loops(block)[-2:]
        sch.unroll(vector).vectorize(lane)
