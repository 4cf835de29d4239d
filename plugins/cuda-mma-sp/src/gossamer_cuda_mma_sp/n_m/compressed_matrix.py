"""Compressed N:M matrices, and their slices and concatenations."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from gossamer_cuda_mma_sp.n_m.metadata_words import (
    UNUSED_NIBBLE,
    fill_last_word,
    groups_of_word,
    nibbles_of_words,
    pad_matrix,
    require_legal,
    require_two_dimensions,
    words_of_nibbles,
)
from gossamer_cuda_mma_sp.n_m.operand_dtypes import (
    OperandDType,
    dtype_of_operand,
    operand_dtype_named,
)
from gossamer_ir.errors import ArgumentError
from gossamer_support.arrays import Array
from gossamer_support.message_texts import amount
from gossamer_support.typed_calls import typed


class CompressedMatrix(msgspec.Struct, frozen=True, eq=False):
    """An N:M matrix: the units that are kept, and the metadata that says which.

    It is made by `compress`, or from arrays by `compressed_matrix`, which check what they are given.

    >>> CompressedMatrix(np.zeros((3, 8), np.int8), np.full((3, 1), 0x4444, np.int16), "int8", (3, 14)).groups
    4
    """

    values: Array
    """The elements of the slots, rows by half of the padded columns."""
    metadata: Array
    """Words in row order (`decode_metadata`), rows by words."""
    dtype: str
    """The dtype of the operand."""
    shape: tuple[int, int]
    """The rows and columns of the matrix, without those that only fill the last word of metadata."""

    @property
    def operand(self) -> OperandDType:
        """The record of the dtype."""
        return operand_dtype_named(self.dtype)

    @property
    def groups(self) -> int:
        """The groups of a row, with those that fill the last word of metadata."""
        return int(self.metadata.shape[1]) * groups_of_word(self.metadata.dtype.name)

    @property
    def word_columns(self) -> int:
        """The columns of the matrix whose metadata is in one word."""
        return groups_of_word(self.metadata.dtype.name) * self.operand.pattern.group

    def nibbles(self) -> Array:
        """Return the metadata of each group, uint8, rows by groups."""
        return nibbles_of_words(self.metadata)


@typed
def compressed_matrix(
    values: Array,
    metadata: Array,
    dtype: str | None = None,
    *,
    shape: tuple[int, int] | None = None,
) -> CompressedMatrix:
    """Return a compressed matrix of arrays that another program has made. They are not copied.

    `values` has the elements of the slots, rows by half of the columns; `metadata` is in row order, int8,
    int16 or int32, rows by words. `dtype` is the dtype of the operand, by default that of `values`. `shape`
    is that of the matrix, by default without columns that only fill the last word.

    Raises `ArgumentError`: `n_m.dtype`, `n_m.range`, `n_m.metadata_dtype`,
    `n_m.dimensions`, `n_m.shape` (sizes that contradict each other). Raises `FormatError`
    (`n_m.metadata`) with the position of the first illegal nibble.

    >>> values, metadata = np.array([[5, 7]], np.int8), np.array([[0x4D]], np.int8)
    >>> compressed_matrix(np.pad(values, ((0, 0), (0, 2))), metadata, shape=(1, 6)).shape
    (1, 6)
    """
    require_two_dimensions("array of values", values)
    require_two_dimensions("metadata", metadata)
    operand = dtype_of_operand(values, dtype)
    columns = metadata.shape[1] * groups_of_word(metadata.dtype.name) * operand.pattern.group
    expected = (metadata.shape[0], columns // 2)
    if values.shape != expected:
        raise ArgumentError(
            "n_m.shape",
            f"The values have the shape {values.shape}; expected {expected} for metadata of "
            f"{amount(metadata.shape[0], 'row')} of {amount(metadata.shape[1], 'word')}.",
        )
    shape = (metadata.shape[0], columns) if shape is None else shape
    if shape[0] != metadata.shape[0] or not 0 <= shape[1] <= columns:
        raise ArgumentError(
            "n_m.shape",
            f"The shape is {shape}; expected {amount(metadata.shape[0], 'row')} and at most "
            f"{amount(columns, 'column')}, as the metadata has.",
        )
    require_legal(nibbles_of_words(metadata), operand.pattern)
    return CompressedMatrix(values, metadata, operand.name, shape)


@typed
def with_metadata_dtype(matrix: CompressedMatrix, metadata_dtype: str) -> CompressedMatrix:
    """Return a compressed matrix with its metadata in words of another dtype: int8, int16 or int32.

    Words in row order are the same bytes in all of them. Groups of zeros fill the last word, and those that
    are no longer needed are left out. Raises `ArgumentError` (`n_m.metadata_dtype`).

    >>> narrow = CompressedMatrix(np.ones((1, 2), np.int8), np.array([[0x4E]], np.int8), "int8", (1, 4))
    >>> with_metadata_dtype(narrow, "int16").metadata == 0x444E
    array([[ True]])
    """
    count, group = groups_of_word(metadata_dtype), matrix.operand.pattern.group
    groups = -(-matrix.shape[1] // group)
    nibbles = fill_last_word(matrix.nibbles()[:, :groups], count)
    values = pad_matrix(matrix.values[:, : groups * group // 2], rows=1, columns=count * group // 2)
    metadata = words_of_nibbles(nibbles, metadata_dtype)
    return CompressedMatrix(values, metadata, matrix.dtype, matrix.shape)


@typed
def slice_compressed(
    matrix: CompressedMatrix, rows: slice = slice(None), columns: slice = slice(None)
) -> CompressedMatrix:
    """Return some rows and columns of a compressed matrix. The arrays of the result are views.

    Columns begin at a multiple of those of a word of metadata, and end at one or at the end of the matrix;
    slices have the step 1. Raises `ArgumentError` (`n_m.slice`) otherwise.

    >>> zeros = CompressedMatrix(np.zeros((9, 16)), np.full((9, 2), 0x4444, np.int16), "int8", (9, 32))
    >>> slice_compressed(zeros, slice(2, 5), slice(16, None)).shape
    (3, 16)
    """
    first, last = _bounds(rows, matrix.shape[0], "rows")
    begin, end = _bounds(columns, matrix.shape[1], "columns")
    word = matrix.word_columns
    if begin % word or (end % word and end != matrix.shape[1]):
        raise ArgumentError(
            "n_m.slice",
            f"The columns {begin} to {end} are sliced; expected multiples of {word}, the columns of a "
            f"word of {matrix.metadata.dtype.name}, or the end, {matrix.shape[1]}.",
        )
    words = slice(begin // word, -(-end // word))
    slots = slice(words.start * word // 2, words.stop * word // 2)
    return CompressedMatrix(
        matrix.values[first:last, slots],
        matrix.metadata[first:last, words],
        matrix.dtype,
        (last - first, end - begin),
    )


def _bounds(part: slice, length: int, noun: str) -> tuple[int, int]:
    begin, end, step = part.indices(length)
    if step != 1:
        raise ArgumentError("n_m.slice", f"The slice of {noun} has the step {step}; expected 1.")
    return begin, max(begin, end)


@typed
def concatenate_compressed(
    matrices: list[CompressedMatrix] | tuple[CompressedMatrix, ...], *, axis: int = 0
) -> CompressedMatrix:
    """Return compressed matrices below each other (`axis` is 0) or beside each other (1).

    They have one dtype, one dtype of metadata, and as many columns, or rows. Beside each other, all but the
    last have a multiple of the columns of a word of metadata. Raises `ArgumentError`
    (`n_m.concatenate`) otherwise.

    >>> zeros = CompressedMatrix(np.zeros((9, 8)), np.full((9, 1), 0x4444, np.int16), "int8", (9, 16))
    >>> concatenate_compressed([zeros, zeros], axis=1).shape
    (9, 32)
    """
    _require_alike(matrices, axis)
    shape = list(matrices[0].shape)
    shape[axis] = sum(matrix.shape[axis] for matrix in matrices)
    return CompressedMatrix(
        np.concatenate([matrix.values for matrix in matrices], axis),
        np.concatenate([matrix.metadata for matrix in matrices], axis),
        matrices[0].dtype,
        (shape[0], shape[1]),
    )


def _require_alike(matrices: Sequence[CompressedMatrix], axis: int) -> None:
    if not matrices or axis not in (0, 1):
        raise ArgumentError(
            "n_m.concatenate",
            f"Cannot concatenate {amount(len(matrices), 'matrix', 'matrices')} along axis {axis}; expected "
            "at least one, and axis 0 or 1.",
        )
    kinds = {
        (matrix.dtype, matrix.metadata.dtype.name, matrix.shape[1 - axis]) for matrix in matrices
    }
    if len(kinds) > 1:
        (dtype, metadata, size), (other, other_metadata, other_size), *_ = sorted(kinds)
        raise ArgumentError(
            "n_m.concatenate",
            f"Matrices of {dtype} with metadata of {metadata} and "
            f"{amount(size, ('column', 'row')[axis])}, and "
            f"of {other} with metadata of {other_metadata} and "
            f"{amount(other_size, ('column', 'row')[axis])} are concatenated; expected the same of all.",
        )
    ragged = [matrix for matrix in matrices[:-1] if matrix.shape[1] % matrix.word_columns]
    if axis == 1 and ragged:
        raise ArgumentError(
            "n_m.concatenate",
            f"A matrix of {amount(ragged[0].shape[1], 'column')} stands before another one; expected a "
            f"multiple of {ragged[0].word_columns}, the columns of a word of metadata.",
        )


def padded_nibbles(matrix: CompressedMatrix, *, rows: int, groups: int) -> Array:
    """Return the metadata of each group, with groups of zeros added so that rows and groups are multiples."""
    return pad_matrix(matrix.nibbles(), rows=rows, columns=groups, fill=UNUSED_NIBBLE)


def without_padding(matrix: CompressedMatrix, shape: tuple[int, int] | None) -> CompressedMatrix:
    """Return the first rows and columns of a matrix, all of them if `shape` is None. The arrays are views.

    Raises `ArgumentError` (`n_m.shape`) if the matrix has fewer rows or columns.
    """
    if shape is None:
        return matrix
    rows, columns = shape
    if not (0 <= rows <= matrix.shape[0] and 0 <= columns <= matrix.shape[1]):
        raise ArgumentError(
            "n_m.shape",
            f"The shape is {shape}; expected at most {matrix.shape}, as the metadata has.",
        )
    words = -(-columns // matrix.word_columns)
    values = matrix.values[:rows, : words * matrix.word_columns // 2]
    return CompressedMatrix(values, matrix.metadata[:rows, :words], matrix.dtype, shape)
