"""Metadata in row order: each row of words has the nibbles of its groups, the first in the lowest bits.

It is the format in which metadata is exchanged: rows and columns may be sliced and concatenated. The words
are int8, int16 or int32.
"""

from __future__ import annotations

import numpy as np

from gossamer_cuda_mma_sp.n_m.n_m_patterns import NIBBLE_BITS, NMPattern
from gossamer_cuda_mma_sp.n_m.operand_dtypes import operand_dtype_named
from gossamer_ir.errors import ArgumentError, FormatError
from gossamer_support.arrays import Array
from gossamer_support.message_texts import amount
from gossamer_support.typed_calls import typed

METADATA_DTYPES = ("int8", "int16", "int32")
"""The dtypes of the words of metadata."""
UNUSED_NIBBLE = 0b0100
"""The metadata of a group of zeros in every pattern."""


def groups_of_word(metadata_dtype: str) -> int:
    """Return the number of groups whose metadata a word holds.

    Raises `ArgumentError` (`n_m.metadata_dtype`) for other dtypes than int8, int16 and int32.

    >>> groups_of_word("int32")
    8
    """
    if metadata_dtype not in METADATA_DTYPES:
        raise ArgumentError(
            "n_m.metadata_dtype",
            f"The dtype of the metadata is '{metadata_dtype}'; expected one of "
            f"{', '.join(METADATA_DTYPES)}.",
        )
    return np.dtype(metadata_dtype).itemsize * 8 // NIBBLE_BITS


def nibbles_of_words(words: Array) -> Array:
    """Return the nibbles of words of any integer dtype, those of each word from its lowest bits, as uint8.

    The last dimension of the result is as many times longer as a word has nibbles.

    >>> nibbles_of_words(np.array([[0x4E94]], np.int16))
    array([[ 4,  9, 14,  4]], dtype=uint8)
    """
    octets = np.ascontiguousarray(words).astype(words.dtype.newbyteorder("<"), copy=False)
    octets = octets.view(np.uint8)
    nibbles = np.empty((*octets.shape, 2), np.uint8)
    np.bitwise_and(octets, 15, out=nibbles[..., 0])
    np.right_shift(octets, NIBBLE_BITS, out=nibbles[..., 1])
    return nibbles.reshape(*octets.shape[:-1], 2 * octets.shape[-1])


def words_of_nibbles(nibbles: Array, word_dtype: str) -> Array:
    """Return words of nibbles, the first of each in its lowest bits: the inverse of `nibbles_of_words`.

    The length of the last dimension is a multiple of the nibbles of a word.

    >>> words_of_nibbles(np.array([[4, 9, 14, 4]], np.uint8), "int16") == 0x4E94
    array([[ True]])
    """
    octets = nibbles[..., 0::2] | nibbles[..., 1::2] << NIBBLE_BITS
    little = np.dtype(word_dtype).newbyteorder("<")
    return np.ascontiguousarray(octets).view(little).astype(word_dtype, copy=False)


def require_legal(nibbles: Array, pattern: NMPattern) -> None:
    """Raise a `FormatError` (`n_m.metadata`) unless all nibbles (rows by groups) are legal."""
    is_legal = np.isin(np.arange(16), pattern.legal)[nibbles]
    if is_legal.all():
        return
    illegal = np.argwhere(~is_legal)
    row, group = map(int, illegal[0])
    first = group * pattern.group
    raise FormatError(
        "n_m.metadata",
        f"The metadata of row {row}, columns {first} to {first + pattern.group - 1}, is "
        f"{nibbles[row, group]:04b}; expected one of "
        f"{', '.join(f'{nibble:04b}' for nibble in pattern.legal)} for the pattern {pattern.name}.",
        hint=f"Groups with illegal metadata: {len(illegal)} of {is_legal.size}. Is it in another order, such "
        "as that of CUTLASS?",
    )


@typed
def decode_metadata(metadata: Array, dtype: str) -> Array:
    """Return the unit of each slot of each group, from metadata in row order.

    `metadata` is an array of int8, int16 or int32, rows by words; `dtype` is the dtype of the operand. The
    result is an array of uint8, rows by groups by slots: of the pattern 2:4 two of the columns 0 to 3, of 1:2
    one of the columns 0 and 1, of 4:8 two of the pairs 0 to 3 of columns. Indices of a group increase.

    Raises `ArgumentError` (`n_m.dtype`, `n_m.metadata_dtype`, `n_m.dimensions`), and
    `FormatError` (`n_m.metadata`) with the position of the first illegal nibble.

    The encoding is that of PTX (PTX ISA, "Sparse matrix storage"): 2 bits for each index.

    >>> decode_metadata(np.array([[0x4E]], np.int8), "float16")
    array([[[2, 3],
            [0, 1]]], dtype=uint8)
    """
    pattern = operand_dtype_named(dtype).pattern
    groups_of_word(metadata.dtype.name)
    require_two_dimensions("metadata", metadata)
    nibbles = nibbles_of_words(metadata)
    require_legal(nibbles, pattern)
    return pattern.slot_indices(nibbles)


@typed
def encode_metadata(indices: Array, dtype: str, *, metadata_dtype: str = "int16") -> Array:
    """Return metadata in row order, from the unit of each slot: the inverse of `decode_metadata`.

    `indices` is an array of integers, rows by groups by slots; see `decode_metadata`. The result has rows by
    words. Groups are added to fill the last word; they have the metadata 0100, that of a group of zeros.

    Raises `ArgumentError` (`n_m.dtype`, `n_m.metadata_dtype`, `n_m.dimensions`), and
    `FormatError` (`n_m.indices`) with the position of the first group whose indices do not increase, or
    are out of range.

    >>> encode_metadata(np.array([[[2, 3], [0, 1]]]), "float16", metadata_dtype="int8") == 0x4E
    array([[ True]])
    """
    pattern = operand_dtype_named(dtype).pattern
    count = groups_of_word(metadata_dtype)
    if indices.ndim != 3 or indices.shape[2] != pattern.slots or indices.dtype.kind not in "iu":
        raise ArgumentError(
            "n_m.dimensions",
            f"The indices are {indices.dtype.name} of shape {indices.shape}; expected integers, rows by "
            f"groups by {pattern.slots} for the pattern {pattern.name}.",
        )
    _require_increasing(indices, pattern)
    low, high = indices[..., 0].astype(np.uint8), indices[..., -1].astype(np.uint8)
    nibbles = low * 2 | (high * 2 + 1) << 2 if pattern.slots == 1 else low | high << 2
    return words_of_nibbles(fill_last_word(nibbles, count), metadata_dtype)


def _require_increasing(indices: Array, pattern: NMPattern) -> None:
    is_wrong = ((indices < 0) | (indices >= pattern.units)).any(axis=2)
    is_wrong |= (indices[..., 1:] <= indices[..., :-1]).any(axis=2)
    if is_wrong.any():
        row, group = map(int, np.argwhere(is_wrong)[0])
        raise FormatError(
            "n_m.indices",
            f"The indices of row {row}, group {group} are {indices[row, group].tolist()}; expected "
            f"increasing numbers from 0 to {pattern.units - 1}.",
        )


def fill_last_word(nibbles: Array, count: int) -> Array:
    """Return nibbles with those of groups of zeros added, so that `count` divides their number in a row."""
    return pad_matrix(nibbles, rows=1, columns=count, fill=UNUSED_NIBBLE)


def pad_matrix(matrix: Array, *, rows: int, columns: int, fill: int = 0) -> Array:
    """Return a matrix whose numbers of rows and columns are multiples of `rows` and `columns`: the matrix
    itself if they are, otherwise a copy with `fill` in the elements that are added after the last ones.

    >>> pad_matrix(np.array([[1, 2, 3]]), rows=2, columns=2)
    array([[1, 2, 3, 0],
           [0, 0, 0, 0]])
    """
    added = (-matrix.shape[0] % rows, -matrix.shape[1] % columns)
    if added == (0, 0):
        return matrix
    return np.pad(matrix, ((0, added[0]), (0, added[1])), constant_values=fill)


def require_two_dimensions(noun: str, array: Array) -> None:
    """Raise an `ArgumentError` (`n_m.dimensions`) unless an array has two dimensions."""
    if array.ndim != 2:
        raise ArgumentError(
            "n_m.dimensions",
            f"The {noun} has {amount(array.ndim, 'dimension')}; expected 2.",
        )
