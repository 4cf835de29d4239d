"""Relational graph convolution and sparse convolution on a GPU, over buckets in ELL3D:

    Y[i, l] = sum over r, j, k of A[r, i, j] * X[j, k] * W[r, k, l]

One launch computes the edges of all relations, of all buckets. A block of threads has a group of rows of one
relation: the groups of all relations are one loop. Each thread gathers the neighbors of a row, multiplies
them by a column of the weights of the relation, and adds the sum to the row of the output atomically, since
a row is in several relations and may be cut (Ye and others, ASPLOS 2023, section 4.4.1, without tensor
cores).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import gossamer as gs
from examples.example import Call
from examples.gathered_products import Gathered
from gossamer_formats import SparseTensor
from gossamer_schedule import ScheduleBuilder
from gossamer_support.arrays import Array

GROUP_SLOTS = 32
"""The slots of a group in each bucket, so that blocks have as much work."""
BLOCK_ROWS, BLOCK_OUTPUTS = 4, 32
"""The rows and the outputs of a block of threads."""

PARAMS = (
    "data{0}: T.handle, indptr{0}: T.handle, rows{0}: T.handle, columns{0}: T.handle, "
    "longest{0}: T.int64, groups{0}: T.int64, "
)
TENSOR = """\
    IO{0} = T.sp.dense_varied(R, (longest{0}, groups{0}), indptr{0}, "int32")
    II{0} = T.sp.compressed_fixed(IO{0}, (m, {rows}), rows{0}, "int32", unique=False)
    J{0} = T.sp.compressed_fixed(II{0}, (n, {width}), columns{0}, "int32")
    A{0} = T.sp.match_buffer(data{0}, (R, IO{0}, II{0}, J{0}), "float32")
"""
PRODUCT = """\
    with T.sp.iteration([R, IO{0}, II{0}, L, J{0}, K], "SSSSRR", "bucket{0}") as [
        r{0}, io{0}, ii{0}, l{0}, j{0}, k{0}
    ]:
        Y[ii{0}, l{0}] = Y[ii{0}, l{0}] + A{0}[r{0}, io{0}, ii{0}, j{0}] * X[j{0}, k{0}] * W[r{0}, k{0}, l{0}]
"""


def script(widths: Sequence[int]) -> str:
    """Return the program over buckets of rows of these widths, after the init of the result."""
    numbers = range(len(widths))
    params = "".join(PARAMS.format(number) for number in numbers)
    tensors = "".join(
        TENSOR.format(number, rows=group_rows(width), width=width)
        for number, width in enumerate(widths)
    )
    products = "".join(PRODUCT.format(number) for number in numbers)
    return f"""
@T.prim_func
def gathered_products({params}x: T.handle, w: T.handle, y: T.handle, relations: T.int64,
                      m: T.int64, n: T.int64, features: T.int64, outputs: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 2}})
    R = T.sp.dense_fixed(relations)
{tensors}    R_detach = T.sp.dense_fixed(relations)
    I = T.sp.dense_fixed(m)
    N = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(features)
    L = T.sp.dense_fixed(outputs)
    X = T.sp.match_buffer(x, (N, K), "float32")
    W = T.sp.match_buffer(w, (R_detach, K, L), "float32")
    Y = T.sp.match_buffer(y, (I, L), "float32")
    with T.sp.iteration([I, L], "SS", "zeros") as [i, l]:
        Y[i, l] = 0.0
{products}"""


def group_rows(width: int) -> int:
    """Return the rows of a group of a bucket."""
    return max(GROUP_SLOTS // width, BLOCK_ROWS)


def schedule(widths: Sequence[int], target: str) -> ScheduleBuilder:
    """Return the schedule of the program for these widths: one launch for the init, one for all buckets. It
    holds for any number of relations."""
    sch = gs.schedule(script(widths), target=target)
    for number in range(len(widths)):
        sch.sparse_fuse(f"bucket{number}", axes=("R", f"IO{number}"))
    sch.lower().lower()
    _bind_elements(sch, "i", "l")
    blocks: list[str] = []
    for number in range(len(widths)):
        block = f"bucket{number}"
        group, row, output, slot, _ = sch.get_loops(block)
        copy = sch.reindex_cache_write(block, buffer="Y_data", scope="local").names[1]
        sch.reverse_compute_at(copy, loop=output)
        sch.decompose_reduction(block, loop=slot)
        rows, thread_row = sch.split(row, factors=(None, BLOCK_ROWS)).names
        outputs, lane = sch.split(output, factors=(None, BLOCK_OUTPUTS)).names
        sch.reorder(group, outputs, rows, thread_row, lane)
        sch.bind(lane, thread="threadIdx.x")
        sch.bind(thread_row, thread="threadIdx.y", accumulate="atomic")
        sch.bind(outputs, thread="blockIdx.y")
        blocks += sch.bind(group, thread="blockIdx.x", accumulate="atomic").names
    if len(blocks) > 1:
        sch.horizontal_fuse(*blocks)
    return sch


def _bind_elements(sch: ScheduleBuilder, row: str, output: str) -> None:
    rows, thread_row = sch.split(row, factors=(None, BLOCK_ROWS)).names
    outputs, lane = sch.split(output, factors=(None, BLOCK_OUTPUTS)).names
    sch.reorder(rows, outputs, thread_row, lane)
    sch.bind(lane, thread="threadIdx.x").bind(thread_row, thread="threadIdx.y")
    sch.bind(outputs, thread="blockIdx.y").bind(rows, thread="blockIdx.x")


def buckets(inputs: Gathered, widths: Sequence[int]) -> list[SparseTensor]:
    """Return the tensor of each bucket: the rows of a relation that have at most its width of elements, and
    more than the bucket before. The last one has all longer rows, which are cut."""
    relation, target, source = inputs.coordinates
    _, row_of_element, lengths = np.unique(
        relation * inputs.shape[1] + target, return_inverse=True, return_counts=True
    )
    bucket = np.searchsorted(widths, np.minimum(lengths[row_of_element], widths[-1]))
    parts = []
    for number, width in enumerate(widths):
        chosen = bucket == number
        stored = gs.from_arrays(
            "coo",
            inputs.shape,
            data=inputs.values[chosen],
            indices_0=relation[chosen].astype(np.int32),
            indices_1=target[chosen].astype(np.int32),
            indices_2=source[chosen].astype(np.int32),
        )
        parts.append(stored.asformat("ell3d", group_rows=group_rows(width), width=width))
    return parts


def prepare(inputs: Gathered, widths: Sequence[int], *, target: str) -> Call:
    """Store the buckets, compile the kernel for the widths, and return the call."""
    kernel = gs.compile(script(widths), target=target, schedule=schedule(widths, target))
    arguments: dict[str, Any] = {"x": inputs.x, "w": inputs.w}
    for number, part in enumerate(buckets(inputs, widths)):
        arguments |= {f"{name}{number}": array for name, array in part.arrays.items()}
        for name in ("longest", "groups"):
            arguments[f"{name}{number}"] = part.sizes[name]
    (_, features, outputs) = inputs.w.shape
    arguments |= dict(zip(("relations", "m", "n"), inputs.shape, strict=True))
    arguments |= {"features": features, "outputs": outputs}

    def call() -> Array:
        result = np.full((inputs.shape[1], inputs.w.shape[2]), np.nan, np.float32)
        kernel(**arguments, y=result)
        return result

    return call
