"""Tensors in blocks (BSR) as operands: whether they are multiplied in blocks, and the keys of their plans."""

from __future__ import annotations

from gossamer.operator_calls.operands.csr_matrix import VALUES
from gossamer_formats import Array, SparseTensor
from gossamer_formats.conversion.recognized_formats import is_format

BLOCK_NAMES = (("indptr", "indices", VALUES), ("mb", "nb", "nnzb"))
"""The parameters of kernels for the arrays of a matrix in blocks, and for its numbers of blocks: those of the
rows, of the columns, and of all."""


def block_size(tensor: SparseTensor) -> tuple[int, int]:
    """Return the rows and the columns of the blocks of a tensor in BSR."""
    return tensor.sizes["block_rows"], tensor.sizes["block_columns"]


def is_in_whole_blocks(tensor: SparseTensor) -> bool:
    """Return whether a tensor is in blocks of more than one element. The last blocks may extend beyond a
    tensor; then it is not multiplied in blocks."""
    if not is_format(tensor.description, "bsr"):
        return False
    block = block_size(tensor)
    is_whole = not any(length % size for length, size in zip(tensor.shape, block, strict=True))
    return is_whole and block != (1, 1)


def blocks_of(tensor: SparseTensor) -> tuple[Array, Array, Array]:
    """Return row pointer, block columns and values (blocks by height by width) of a tensor in BSR."""
    arrays = tensor.arrays
    return arrays["indptr"], arrays["indices"], arrays["data"].reshape(-1, *block_size(tensor))


def block_key(indptr: Array, indices: Array, data: Array) -> object:
    """Return the key of plans for blocks of this size with these dtypes."""
    return "blocks", indptr.dtype, indices.dtype, data.dtype, data.shape[1:]
