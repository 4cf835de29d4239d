"""Matrices in whole blocks (BSR) times dense matrices, block by block: a variant of `spmm`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from gossamer.operator_calls.kernels import KernelRequest, default_check
from gossamer.operator_calls.operands.blocks import (
    BLOCK_NAMES,
    block_key,
    blocks_of,
    is_in_whole_blocks,
)
from gossamer.operator_calls.operands.csr_matrix import CHECKED, VALUES
from gossamer.operator_calls.program import OperatorProgram, Variant
from gossamer_formats import Array, SparseTensor, check_storage
from gossamer_formats.scipy_matrices.csr_of_scipy import borrow_blocks

SCRIPT = """\
@T.prim_func
def bsrmm(
    a: T.handle,
    b: T.handle,
    c: T.handle,
    indptr: T.handle,
    indices: T.handle,
    mb: T.int64,
    nb: T.int64,
    nnzb: T.int64,
    height: T.int64,
    width: T.int64,
    feat_size: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 2, "global_symbol": "bsrmm", "tir.noalias": True})
    IO = T.sp.dense_fixed(mb)
    JO = T.sp.compressed_varied(IO, (nb, nnzb), (indptr, indices), sorted=False, unique=False)
    JO_detach = T.sp.dense_fixed(nb)
    II = T.sp.dense_fixed(height)
    JI = T.sp.dense_fixed(width)
    K = T.sp.dense_fixed(feat_size)
    A = T.sp.match_buffer(a, (IO, JO, II, JI), "float32")
    B = T.sp.match_buffer(b, (JO_detach, JI, K), "float32")
    C = T.sp.match_buffer(c, (IO, II, K), "float32")
    with T.sp.iteration([IO, JO, II, JI, K], "SRSRS", "bsrmm") as [io, jo, ii, ji, k]:
        with T.init():
            C[io, ii, k] = 0.0
        C[io, ii, k] = C[io, ii, k] + A[io, jo, ii, ji] * B[jo, ji, k]
"""

PROGRAM = OperatorProgram("bsrmm", SCRIPT, buffers=("A", "B", "C"), features="feat_size")


class BlockMatrix(NamedTuple):
    """A checked matrix in whole blocks: `data` has the blocks, each in rows."""

    indptr: Array
    indices: Array
    data: Array
    shape: tuple[int, ...]

    @property
    def dtype(self) -> str:
        return self.data.dtype.name

    @property
    def value_count(self) -> int:
        return self.data.size

    @property
    def memory(self) -> tuple[Array, ...]:
        return self.indptr, self.indices, self.data

    @property
    def plan_key(self) -> object:
        """Its dtypes, and the size of its blocks."""
        return block_key(*self.memory)

    @property
    def structure(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return BLOCK_NAMES

    @property
    def verified(self) -> tuple[str, ...]:
        return CHECKED

    def request(
        self, program: OperatorProgram, *, dtype: str, features: int | None
    ) -> KernelRequest:
        """Return the request for the kernel over blocks of this size that computes what a program does."""
        _, height, width = self.data.shape
        sizes = (("height", height), ("width", width))
        in_blocks = msgspec.structs.replace(PROGRAM, scales=program.scales, adds=program.adds)
        indptr, indices = self.indptr.dtype.name, self.indices.dtype.name
        return KernelRequest(in_blocks, Variant(dtype, indptr, indices, features, sizes))

    def arguments(self, program: OperatorProgram, dense: Mapping[str, Array]) -> dict[str, Any]:
        """Return all arguments of a kernel, with these `dense` ones, whose rows are divided into blocks."""
        _, height, width = self.data.shape
        return {
            **dense,
            "b": _in_blocks(dense["b"], width),
            "c": _in_blocks(dense["c"], height),
            "indptr": self.indptr,
            "indices": self.indices,
            VALUES: self.data,
        }


def _in_blocks(array: Array, height: int) -> Array:
    """Return a view of a matrix in blocks of rows."""
    rows, columns = array.shape
    return array.reshape(rows // height, height, columns)


def block_matrix(matrix: Any) -> BlockMatrix | None:
    """Return a matrix of SciPy, or a tensor, as a matrix in blocks; None unless it is in whole blocks of more
    than one element. The last blocks of a tensor may extend beyond it."""
    if not isinstance(matrix, SparseTensor):
        if getattr(matrix, "format", "") != "bsr" or getattr(matrix, "blocksize", ()) == (1, 1):
            return None
        return BlockMatrix(*borrow_blocks(matrix), matrix.shape)
    if not is_in_whole_blocks(matrix):
        return None
    if matrix.is_borrowed:
        # The caller can write to its arrays.
        check_storage(matrix.storage, check=default_check())
    return BlockMatrix(*blocks_of(matrix), matrix.shape)
