"""The order of metadata in CUTLASS's kernels for sm_90."""

from __future__ import annotations

import numpy as np

from gossamer_cuda_mma_sp.n_m.compressed_matrix import (
    CompressedMatrix,
    compressed_matrix,
    padded_nibbles,
    without_padding,
)
from gossamer_cuda_mma_sp.n_m.metadata_words import nibbles_of_words, pad_matrix, words_of_nibbles
from gossamer_cuda_mma_sp.n_m.operand_dtypes import OperandDType, dtype_of_operand
from gossamer_ir.errors import ArgumentError
from gossamer_support.arrays import Array
from gossamer_support.typed_calls import typed

ATOM_ROWS = 64
"""The rows of an atom: those of A in `wgmma.mma_async.sp`."""
MAX_TILE_COLUMNS = 128
"""The columns of the widest tile for which CUTLASS orders metadata."""


@typed
def to_cutlass_sm90(matrix: CompressedMatrix, *, tile_columns: int) -> tuple[Array, Array]:
    """Return the values, and the metadata in the order of CUTLASS for sm_90.

    `tile_columns` is the depth of the kernel's tile: a multiple of 512 bits of dense elements (32 columns
    of 16 bits), at most 128. The order depends on it. The metadata is uint8: tiles in the direction of the
    columns by tiles of 64 rows by bytes. Rows are padded to a multiple of 64, columns to one of
    `tile_columns`, with groups of zeros. The values have the padded rows by half of the padded columns.

    In a tile for operands of 8 bits, rows follow each other. For those of 16 and 32 bits the order is, from
    the fastest to the slowest: four groups, row `r // 8 % 2`, 512 bits of the columns, row `r % 8`, half of
    the 512 bits, and row `r // 16`. The source is CUTLASS (`Sm90GemmSparseConfig` in
    include/cutlass/gemm/collective/builders/sm90_sparse_config.inl).

    Raises `ArgumentError`: `n_m.cutlass` (the columns of a tile), `n_m.dtype` (int4 and uint4,
    which sm_90 does not multiply).

    >>> from gossamer_cuda_mma_sp.n_m.compress import compress
    >>> values, metadata = to_cutlass_sm90(compress(np.array([[0, 0, 3, 5]], np.float16)), tile_columns=64)
    >>> values.shape, metadata.shape, hex(metadata[0, 0, 0])
    ((64, 32), (1, 1, 512), '0x4e')
    """
    operand = matrix.operand
    _require_tile(operand, tile_columns)
    groups = tile_columns // operand.pattern.group
    nibbles = padded_nibbles(matrix, rows=ATOM_ROWS, groups=groups)
    row_tiles, column_tiles = nibbles.shape[0] // ATOM_ROWS, nibbles.shape[1] // groups
    tiles = nibbles.reshape(row_tiles, 4, 2, 8, column_tiles, *_columns(operand, groups))
    ordered = tiles.transpose(_axes(operand))
    octets = words_of_nibbles(ordered.reshape(*ordered.shape[:2], ATOM_ROWS * groups), "uint8")
    values = pad_matrix(matrix.values, rows=ATOM_ROWS, columns=tile_columns // 2)
    return values, octets


@typed
def from_cutlass_sm90(
    values: Array,
    metadata: Array,
    dtype: str | None = None,
    *,
    tile_columns: int,
    shape: tuple[int, int] | None = None,
) -> CompressedMatrix:
    """Return the compressed matrix that CUTLASS stores for sm_90: the inverse of `to_cutlass_sm90`.

    `values` has rows by half of the columns, `metadata` is uint8, tiles by tiles by bytes. `dtype` is that of
    the operand, by default that of `values`; `shape` is that of the matrix without padding. The metadata of
    the result is int16.

    Raises `ArgumentError`: `n_m.dtype`, `n_m.cutlass` (the columns of a tile, or the dtype or shape
    of the metadata), `n_m.shape`. Raises `FormatError` (`n_m.metadata`) with the position of the
    first illegal nibble. CUTLASS itself stores 0000 for a group of zeros, which is one.

    >>> from gossamer_cuda_mma_sp.n_m.compress import compress, decompress
    >>> stored = to_cutlass_sm90(compress(np.array([[0, 0, 3, 5]], np.float16)), tile_columns=64)
    >>> decompress(from_cutlass_sm90(*stored, tile_columns=64, shape=(1, 4)))
    array([[0., 0., 3., 5.]], dtype=float16)
    """
    operand = dtype_of_operand(values, dtype)
    _require_tile(operand, tile_columns)
    groups = tile_columns // operand.pattern.group
    size = ATOM_ROWS * groups // 2
    if metadata.ndim != 3 or metadata.shape[2] != size or metadata.dtype.name != "uint8":
        raise ArgumentError(
            "n_m.cutlass",
            f"The metadata is {metadata.dtype.name} of shape {metadata.shape}; expected uint8, tiles by "
            f"tiles by {size} bytes.",
        )
    axes = _axes(operand)
    unordered = (1, 4, 2, 8, 1, *_columns(operand, groups))
    sizes = [unordered[axis] for axis in axes[2:]]
    ordered = nibbles_of_words(metadata).reshape(*metadata.shape[:2], *sizes)
    tiles = ordered.transpose(np.argsort(axes))
    nibbles = tiles.reshape(metadata.shape[1] * ATOM_ROWS, metadata.shape[0] * groups)
    words = words_of_nibbles(nibbles, "int16")
    return without_padding(compressed_matrix(values, words, operand.name), shape)


def _require_tile(operand: OperandDType, tile_columns: int) -> None:
    if operand.bits == 4:
        raise ArgumentError(
            "n_m.dtype",
            f"CUTLASS for sm_90 does not multiply {operand.name}; expected 8 bits or more.",
        )
    block = 512 // operand.bits
    if tile_columns % block or not block <= tile_columns <= MAX_TILE_COLUMNS:
        raise ArgumentError(
            "n_m.cutlass",
            f"A tile has {tile_columns} columns; expected a multiple of {block} for {operand.name}, at most "
            f"{MAX_TILE_COLUMNS}.",
        )


def _columns(operand: OperandDType, groups: int) -> tuple[int, ...]:
    """Return the sizes of the parts into which the groups of a row of a tile are split."""
    return (groups,) if operand.bits == 8 else (groups // 8, 2, 4)


def _axes(operand: OperandDType) -> tuple[int, ...]:
    """Return the order of the axes (row tile, 4, 2 and 8 rows, column tile, parts of a row) in memory."""
    return (4, 0, 1, 2, 3, 5) if operand.bits == 8 else (4, 0, 1, 6, 3, 5, 2, 7)
