"""The order of metadata in CUTLASS's kernels for sm_80, which PyTorch's CUTLASS backend uses."""

from __future__ import annotations

import numpy as np

from gossamer_cuda_mma_sp.n_m.compressed_matrix import (
    CompressedMatrix,
    compressed_matrix,
    padded_nibbles,
    without_padding,
)
from gossamer_cuda_mma_sp.n_m.metadata_words import pad_matrix, words_of_nibbles
from gossamer_cuda_mma_sp.n_m.operand_dtypes import OperandDType, dtype_of_operand
from gossamer_ir.errors import ArgumentError
from gossamer_support.arrays import Array
from gossamer_support.typed_calls import typed


@typed
def to_cutlass_sm80(matrix: CompressedMatrix) -> tuple[Array, Array]:
    """Return the values, and the metadata in the order of CUTLASS for sm_80.

    The words of metadata are int16 for operands of 16 and 32 bits, and int32 for those of 8 and 4 bits. Rows
    are padded to a multiple of 32 (16 for int32), and words to an even number, with groups of zeros. Both
    results have the padded rows; the values half of the padded columns.

    Word c of row r is moved to the row `r // 32 * 32 + r % 8 * 4 + r % 32 // 8` (for int32,
    `r // 16 * 16 + r % 8 * 2 + r % 16 // 8`). Then the off-diagonal words of 2 by 2 blocks are exchanged,
    and pairs of columns are stored one after the other, both words of a row side by side. The source is
    CUTLASS (`reorder_meta` in tools/util/include/cutlass/util/host_reorder.h, and the layout
    `ColumnMajorInterleaved<2>`).

    >>> from gossamer_cuda_mma_sp.n_m.compress import compress
    >>> values, metadata = to_cutlass_sm80(compress(np.array([[0, 0, 3, 5]], np.float16)))
    >>> values.shape, metadata.shape, hex(metadata[0, 0])
    ((32, 16), (32, 2), '0x444e')
    """
    operand = matrix.operand
    word_dtype, rows = _order(operand)
    count = np.dtype(word_dtype).itemsize * 2
    nibbles = padded_nibbles(matrix, rows=rows, groups=2 * count)
    words = words_of_nibbles(nibbles, word_dtype)
    metadata = np.empty(words.size, word_dtype)
    metadata[_offsets(words.shape[0], words.shape[1], rows)] = words
    slots = 2 * count * operand.pattern.group // 2
    values = pad_matrix(matrix.values, rows=rows, columns=slots)
    return values, metadata.reshape(words.shape)


@typed
def from_cutlass_sm80(
    values: Array,
    metadata: Array,
    dtype: str | None = None,
    *,
    shape: tuple[int, int] | None = None,
) -> CompressedMatrix:
    """Return the compressed matrix that CUTLASS stores for sm_80: the inverse of `to_cutlass_sm80`.

    `values` has rows by half of the columns, `metadata` rows by words of int16 or int32. `dtype` is that of
    the operand, by default that of `values`; `shape` is that of the matrix without padding.

    Raises `ArgumentError`: `n_m.dtype`, `n_m.range`, `n_m.cutlass` (another dtype or shape of
    the metadata), `n_m.shape`. Raises `FormatError` (`n_m.metadata`) with the position of the first
    illegal nibble.

    >>> from gossamer_cuda_mma_sp.n_m.compress import compress, decompress
    >>> stored = to_cutlass_sm80(compress(np.array([[0, 0, 3, 5]], np.float16)))
    >>> decompress(from_cutlass_sm80(*stored, shape=(1, 4)))
    array([[0., 0., 3., 5.]], dtype=float16)
    """
    operand = dtype_of_operand(values, dtype)
    word_dtype, rows = _order(operand)
    is_shaped = metadata.ndim == 2 and metadata.shape[0] % rows == 0 and metadata.shape[1] % 2 == 0
    if not is_shaped or metadata.dtype.name != word_dtype:
        raise ArgumentError(
            "n_m.cutlass",
            f"The metadata is {metadata.dtype.name} of shape {metadata.shape}; expected {word_dtype}, a "
            f"multiple of {rows} rows and an even number of words, for {operand.name}.",
        )
    offsets = _offsets(metadata.shape[0], metadata.shape[1], rows)
    words = np.take(metadata.reshape(-1), offsets)
    return without_padding(compressed_matrix(values, words, operand.name), shape)


def _order(operand: OperandDType) -> tuple[str, int]:
    """Return the dtype of words, and the number of rows among which they are moved."""
    return ("int16", 32) if operand.bits >= 16 else ("int32", 16)


def _offsets(rows: int, words: int, block: int) -> Array:
    """Return where each word is in memory, rows by words."""
    row, word = np.arange(rows)[:, None], np.arange(words)[None, :]
    interleave = block // 8
    moved = row // block * block + row % 8 * interleave + row % block // 8
    # +1 for the upper right word of a 2 by 2 block, -1 for the lower left one.
    exchange = (moved % 2 == 0).astype(np.int64) * (word % 2) - (moved % 2) * (word % 2 == 0)
    moved, word = moved + exchange, word - exchange
    return np.asarray(word // 2 * rows * 2 + moved * 2 + word % 2)
