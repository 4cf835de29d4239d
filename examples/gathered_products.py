"""Products of gathered rows, for relational graph convolution and sparse convolution:

    Y[i, l] = sum over r, j, k of A[r, i, j] * X[j, k] * W[r, k, l]

Groups of rows of one relation are gathered into a small dense matrix, which is multiplied by the weights of
the relation; the result is added to the rows of the output. Nothing of the size of a relation times the
number of nodes is stored, as in the fused program of SparseTIR (Ye and others, ASPLOS 2023, section 4.4.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import gossamer as gs
from examples.bound_kernel import bound_kernel
from examples.example import Call
from gossamer_formats import SparseTensor
from gossamer_ir import parse_format
from gossamer_ir.script import print_format
from gossamer_schedule import ScheduleBuilder
from gossamer_support.arrays import Array

FORMAT = parse_format("""
@T.format
def ell3d_panels(
    data: T.handle, indptr: T.handle, rows: T.handle, columns: T.handle,
    relations: T.int64, m: T.int64, n: T.int64, longest: T.int64, groups: T.int64,
    panel: T.int64, group_rows: T.int64, width: T.int64,
) -> None:
    P = T.sp.dense_fixed((m + panel - 1) // panel)
    R = T.sp.dense_fixed(relations, parent=P)
    IO = T.sp.dense_varied(R, (longest, groups), indptr, "int32")
    II = T.sp.compressed_fixed(IO, (panel, group_rows), rows, "int32", unique=False)
    J = T.sp.compressed_fixed(II, (n, width), columns, "int32")
    A = T.sp.match_buffer(data, (P, R, IO, II, J), "float32")
    T.sp.map(lambda p, r, io, ii, j: (r, p * panel + ii, j), shape=(relations, m, n))
""")
"""ELL3D with panels of rows. Different panels have different rows of the output, so they run in parallel and
add without atomic operations."""

FULL_FORMAT = parse_format(
    print_format(FORMAT)
    .replace("def ell3d_panels", "def full_ell3d_panels")
    .replace('rows, "int32", unique=False)', 'rows, "int32", unique=False, padded=False)')
)
"""The same without unused places in groups."""

OPERANDS = """
@T.prim_func
def gathered_products(
    data: T.handle, indptr: T.handle, rows: T.handle, columns: T.handle,
    x: T.handle, w: T.handle, y: T.handle,
    relations: T.int64, m: T.int64, n: T.int64, longest: T.int64, groups: T.int64,
    panel: T.int64, group_rows: T.int64, width: T.int64, features: T.int64, outputs: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 2})
    P = T.sp.dense_fixed((m + panel - 1) // panel)
    R = T.sp.dense_fixed(relations, parent=P)
    IO = T.sp.dense_varied(R, (longest, groups), indptr, "int32")
    II = T.sp.compressed_fixed(
        IO, (panel, group_rows), rows, "int32", unique=False, padded=False
    )
    J = T.sp.compressed_fixed(II, (n, width), columns, "int32")
    P_detach = T.sp.dense_fixed((m + panel - 1) // panel)
    R_detach = T.sp.dense_fixed(relations)
    I_detach = T.sp.dense_fixed(panel)
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(features)
    L = T.sp.dense_fixed(outputs)
    A = T.sp.match_buffer(data, (P, R, IO, II, J), "float32")
    X = T.sp.match_buffer(x, (J_detach, K), "float32")
    W = T.sp.match_buffer(w, (R_detach, K, L), "float32")
    Y = T.sp.match_buffer(y, (P_detach, I_detach, L), "float32")
"""
"""The operands of a program in this format: tensor, features of nodes, weights, and result."""

SCRIPT = f"""{OPERANDS}\
    AX = T.sp.alloc_buffer((P, R, IO, II, K), "float32")
    with T.sp.iteration([P, R, IO, II, J, K], "SSSSRS", "gather") as [p, r, io, ii, j, k]:
        with T.init():
            AX[p, r, io, ii, k] = 0.0
        AX[p, r, io, ii, k] = AX[p, r, io, ii, k] + A[p, r, io, ii, j] * X[j, k]
    with T.sp.iteration([P, R, IO, II, L, K], "SSSSSR", "multiply") as [p, r, io, ii, l, k]:
        Y[p, ii, l] = Y[p, ii, l] + AX[p, r, io, ii, k] * W[r, k, l]
"""

LANES = 16
TILE = 2
"""Vectors of outputs of a tile: with 8 rows they fill half of the registers of AVX-512."""
UNROLLED = 4
"""Widest rows whose gathering is unrolled."""


class Gathered(NamedTuple):
    """A tensor of relations, targets and sources, in coordinates, and the operands."""

    shape: tuple[int, int, int]
    coordinates: tuple[Array, Array, Array]
    values: Array
    x: Array
    w: Array


def schedule(sizes: dict[str, int]) -> ScheduleBuilder:
    """Return the schedule of `SCRIPT` for constant sizes.

    One group is gathered and multiplied at a time. A tile of the result stays in registers during the loop
    over features, and is then added to the rows of the output.
    """
    sch = gs.schedule(SCRIPT, specialize=sizes).lower().lower()
    p, _, io, ii, l, k = sch.get_loops("multiply")  # noqa: E741
    l_tile, l_vector, l_lane = sch.split(l, factors=(None, TILE, LANES)).names
    sch.reorder(l_tile, k, ii, l_vector, l_lane)
    _, added, *_ = sch.reindex_cache_write("multiply", buffer="Y_data", scope="local").names
    sch.reverse_compute_at(added, loop=l_tile)
    product_init, *_ = sch.decompose_reduction("multiply", loop=k).names
    _, copy, *_ = sch.cache_write("gather", buffer="AX_data", scope="local").names
    sch.compute_at(copy, loop=io)
    row, copied = sch.get_loops(copy)[-2:]
    sch.compute_at("gather", loop=row)
    j, gathered = sch.get_loops("gather")[-2:]
    k_vector, k_lane = sch.split(gathered, factors=(None, LANES)).names
    sch.reorder(j, k_vector, k_lane)
    sum_init, *_ = sch.decompose_reduction("gather", loop=j).names
    if 1 < sizes["width"] <= UNROLLED:
        sch.unroll(j)
    sch.split(copied, factors=(None, LANES))
    for block in (sum_init, "gather", copy):
        vector, lane = sch.get_loops(block)[-2:]
        sch.unroll(vector).vectorize(lane)
    sch.split(sch.get_loops(added)[-1], factors=(TILE, LANES))
    for block in (product_init, "multiply", added):
        rows, vector, lane = sch.get_loops(block)[-3:]
        sch.unroll(rows).unroll(vector).vectorize(lane)
    return sch.parallel(p, weight=f"T.int64(IO_indptr[{p} * {sizes['relations']}])")


def buckets(
    inputs: Gathered, widths: Sequence[int], *, panels: int, group_rows: int
) -> Iterator[SparseTensor]:
    """Yield a part for each width, with the rows of a relation that are longer than the width before.

    The last part also has all longer rows, which are cut.
    """
    relation, target, source = inputs.coordinates
    rows = inputs.shape[1]
    _, row_of_element, lengths = np.unique(
        relation * rows + target, return_inverse=True, return_counts=True
    )
    bucket = np.searchsorted(widths, np.minimum(lengths[row_of_element], widths[-1]))
    for number, width in enumerate(widths):
        chosen = bucket == number
        if chosen.any():
            stored = gs.from_arrays(
                "coo",
                inputs.shape,
                data=inputs.values[chosen],
                indices_0=relation[chosen].astype(np.int32),
                indices_1=target[chosen].astype(np.int32),
                indices_2=source[chosen].astype(np.int32),
            )
            panel = max(1, -(-rows // panels))
            sizes: dict[str, Any] = {"panel": panel, "group_rows": group_rows, "width": width}
            yield full_groups(stored.asformat(FORMAT, **sizes))


def full_groups(stored: SparseTensor) -> SparseTensor:
    """Return the same tensor with whole groups: instead of unused places, a group has its last row several
    times, without elements. So no place has to be tested while a group is multiplied."""
    rows = stored.arrays["rows"].reshape(-1, stored.sizes["group_rows"])
    is_used = rows < stored.sizes["panel"]
    last = np.where(is_used, rows, -1).max(axis=1, keepdims=True)
    arrays = {**stored.arrays, "rows": np.where(is_used, rows, last).reshape(-1)}
    sizes: dict[str, Any] = {name: stored.sizes[name] for name in ("panel", "group_rows", "width")}
    return gs.from_arrays(FULL_FORMAT, stored.shape, **sizes, **arrays)


def prepare(
    inputs: Gathered,
    widths: Sequence[int],
    *,
    panels: int = 2,
    group_rows: int = 8,
    script: str = SCRIPT,
    schedule: Callable[[dict[str, int]], ScheduleBuilder] = schedule,
) -> Call:
    """Build the parts, compile a kernel for each width, and return the call.

    `script` is this program or another one with the same operands, and `schedule` its schedule.
    """
    (relations, rows, _), features, outputs = inputs.shape, inputs.x.shape[1], inputs.w.shape[2]
    panel = max(1, -(-rows // panels))
    result = np.zeros((-(-rows // panel), panel, outputs), np.float32)
    calls = []
    for part in buckets(inputs, widths, panels=panels, group_rows=group_rows):
        fixed = {
            "relations": relations, "group_rows": group_rows, "width": part.sizes["width"],
            "features": features, "outputs": outputs,
        }  # fmt: skip
        kernel = gs.compile(script, specialize=fixed, schedule=schedule(fixed))
        calls.append(bound_kernel(kernel, part, fixed, x=inputs.x, w=inputs.w, y=result))

    def call() -> Array:
        result[...] = 0
        for add in calls:
            add()
        return result.reshape(-1, outputs)[:rows]

    return call


def oracle(inputs: Gathered) -> Array:
    """Return the result in float64, relation by relation."""
    return _by_relations(inputs, inputs.values, inputs.x, inputs.w)


def magnitude(inputs: Gathered) -> Array:
    """Return the sums of absolute values of terms."""
    return _by_relations(inputs, np.abs(inputs.values), np.abs(inputs.x), np.abs(inputs.w))


def _by_relations(inputs: Gathered, values: Array, x: Array, w: Array) -> Array:
    relation, target, source = inputs.coordinates
    result = np.zeros((inputs.shape[1], w.shape[2]))
    for number in range(inputs.shape[0]):
        chosen = relation == number
        terms = values[chosen, None].astype(np.float64) * x[source[chosen]]
        np.add.at(result, target[chosen], terms @ w[number].astype(np.float64))
    return result


def terms(inputs: Gathered) -> int:
    """Return the most roundings of an element: edges, features and relations are added one after another."""
    edges = int(np.bincount(inputs.coordinates[1], minlength=1).max(initial=0))
    return edges + int(inputs.w.shape[1]) + inputs.shape[0]
