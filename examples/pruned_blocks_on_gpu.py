"""A matrix in BSR whose blocks have the pattern 2:4, times a dense one, on the sparse tensor cores of a GPU:

    C[io, ii, k] += sum over blocks jo of block row io, groups g and slots j of
                    A[io, jo, ii, g, j] * B[jo, 4 * g + column of the slot, k]

Blocks without nonzeros are not stored, and half of the elements of the others. A block row has
blocks of threads of its own; an intrinsic multiplies a block by `mma.sp` instructions, and adds the products
to the result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import gossamer as gs
from examples.example import Call
from gossamer_ir.core.dtypes import SUM_DTYPES
from gossamer_schedule import ScheduleBuilder
from gossamer_support.arrays import Array

GROUP, SLOTS = 4, 2

_SCRIPT = """
@T.prim_func
def pruned_blocks(a: T.handle, e: T.handle, b: T.handle, c: T.handle, indptr: T.handle, indices: T.handle,
                  block_rows: T.int64, block_columns: T.int64, blocks: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 2}})
    IO = T.sp.dense_fixed(block_rows)
    JO = T.sp.compressed_varied(IO, (block_columns, blocks), (indptr, indices), "int32")
    II = T.sp.dense_fixed({height}, parent=JO)
    G = T.sp.dense_fixed({groups}, parent=II)
    J = T.sp.compressed_fixed(G, (4, 2), e, "uint8", padded=False)
    NB = T.sp.dense_fixed(block_columns)
    JI = T.sp.dense_fixed({groups} * 4)
    R = T.sp.dense_fixed({height})
    K = T.sp.dense_fixed({features})
    A = T.sp.match_buffer(a, (IO, JO, II, G, J), "{dtype}")
    B = T.sp.match_buffer(b, (NB, JI, K), "{dtype}")
    C = T.sp.match_buffer(c, (IO, R, K), "{sums}")
    with T.sp.iteration([IO, JO, II, G, J, K], "SRSRRS", "blocks") as [io, jo, ii, g, j, k]:
        C[io, ii, k] = C[io, ii, k] + T.{sums}(A[io, jo, ii, g, j]) * T.{sums}(B[jo, g * 4 + j, k])
"""


class PrunedBlocks(NamedTuple):
    """A matrix in blocks: the first block of each block row, the block columns, and of each block the values
    of its slots and their columns within groups (blocks, rows, groups, slots)."""

    indptr: Array
    indices: Array
    values: Array
    columns: Array
    block_columns: int

    def toarray(self) -> Array:
        """Return the dense matrix (block rows * rows, block columns * columns) in float64."""
        _, height, groups, _ = self.values.shape
        stored = np.zeros((*self.values.shape[:3], GROUP))
        np.put_along_axis(stored, self.columns.astype(np.int64), self.values.astype(float), axis=-1)
        dense = np.zeros((len(self.indptr) - 1, self.block_columns, height, groups * GROUP))
        rows = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        dense[rows, self.indices] = stored.reshape(-1, height, groups * GROUP)
        return dense.swapaxes(1, 2).reshape(
            dense.shape[0] * height, self.block_columns * groups * GROUP
        )


def random_blocks(
    lengths: tuple[int, ...], *, block_columns: int, height: int, groups: int, dtype: str
) -> PrunedBlocks:
    """Return a matrix of small integers with this number of blocks in each block row."""
    rng, count = np.random.default_rng(len(lengths)), sum(lengths)
    chosen = [np.sort(rng.choice(block_columns, length, replace=False)) for length in lengths]
    order = np.argsort(rng.random((count, height, groups, GROUP)), axis=-1)
    return PrunedBlocks(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
        np.concatenate([*chosen, []]).astype(np.int32),
        rng.integers(-4, 5, (count, height, groups, SLOTS)).astype(dtype),
        np.sort(order[..., :SLOTS], axis=-1).astype(np.uint8),
        block_columns,
    )


def script(dtype: str, *, height: int, groups: int, features: int) -> str:
    """Return the program for blocks of this many rows and groups of four columns, and for these features. It
    adds to the result."""
    return _SCRIPT.format(
        dtype=dtype, sums=SUM_DTYPES[dtype], height=height, groups=groups, features=features
    )


def schedule(text: str, dtype: str, target: str) -> ScheduleBuilder:
    """Return the schedule: `mma.sp` multiplies each block, and block rows are apart."""
    sch = gs.schedule(text, target=target)
    sch.lower().lower()
    row, _, inner_row, *_ = sch.get_loops("blocks")
    sch.sparse_tensorize(inner_row, intrinsic=f"mma_sp_product_{dtype}")
    sch.bind(row, thread="blockIdx.z")
    return sch


def prepare(matrix: PrunedBlocks, b: Array, *, target: str) -> Call:
    """Compile the kernel, and return the call, whose result has the shape (block rows, rows, features)."""
    _, height, groups, _ = matrix.values.shape
    dtype = matrix.values.dtype.name
    text = script(dtype, height=height, groups=groups, features=b.shape[1])
    kernel = gs.compile(text, target=target, schedule=schedule(text, dtype, target))
    block_rows, features = len(matrix.indptr) - 1, b.shape[1]
    dense = b.reshape(matrix.block_columns, groups * GROUP, features)

    def call() -> Array:
        result = np.zeros((block_rows, height, features), SUM_DTYPES[dtype])
        kernel(
            a=matrix.values,
            e=matrix.columns,
            b=dense,
            c=result,
            indptr=matrix.indptr,
            indices=matrix.indices,
            block_rows=block_rows,
            block_columns=matrix.block_columns,
            blocks=len(matrix.indices),
        )
        return result

    return call
