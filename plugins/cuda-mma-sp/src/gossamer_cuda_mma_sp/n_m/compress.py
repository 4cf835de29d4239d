"""`compress` and `decompress`: dense matrices to compressed N:M matrices, and back."""

from __future__ import annotations

import numpy as np

from gossamer_cuda_mma_sp.n_m.compressed_matrix import CompressedMatrix
from gossamer_cuda_mma_sp.n_m.metadata_words import (
    groups_of_word,
    pad_matrix,
    require_legal,
    require_two_dimensions,
    words_of_nibbles,
)
from gossamer_cuda_mma_sp.n_m.operand_dtypes import OperandDType, dtype_of_operand
from gossamer_ir.errors import FormatError
from gossamer_support.arrays import Array
from gossamer_support.message_texts import amount
from gossamer_support.typed_calls import typed


@typed
def compress(
    matrix: Array, dtype: str | None = None, *, metadata_dtype: str = "int16"
) -> CompressedMatrix:
    """Return an N:M matrix in compressed form: half of its elements, and metadata.

    `matrix` is a dense array of rows by columns. `dtype` is the dtype of the operand, with the dtype of NumPy
    in which it is stored and its pattern: float16, bfloat16 (uint16), int8, uint8, float8_e4m3 and
    float8_e5m2 (uint8) are 2:4, tfloat32 (float32) is 1:2, int4 (int8) and uint4 (uint8) are 4:8 in pairs. By
    default it is that of the array: bfloat16 for uint16, tfloat32 for float32. Columns of zeros are added to
    fill the last word of `metadata_dtype`, which is int8, int16 or int32.

    A slot without an element that is not zero holds the first zero of its group, so the result is canonical:
    equal matrices have equal results. NaN is not zero. -0.0 is zero, and becomes 0.0. Other elements keep
    their bits.

    Raises `FormatError` (`n_m.group`) with the row, the columns and the number of elements of the first
    group that does not have the pattern; nothing is pruned. Raises `ArgumentError`: `n_m.dtype`,
    `n_m.range` (not values of int4 or uint4), `n_m.metadata_dtype`, `n_m.dimensions`.

    The metadata is that of PTX (PTX ISA, "Sparse matrix storage"), in row order (`decode_metadata`).

    >>> compressed = compress(np.array([[0, 5, 0, 7, 0, 0, 3, 0]], np.float16), metadata_dtype="int8")
    >>> compressed.values
    array([[5., 7., 0., 3.]], dtype=float16)
    >>> from gossamer_cuda_mma_sp.n_m.metadata_words import decode_metadata
    >>> decode_metadata(compressed.metadata, "float16")
    array([[[1, 3],
            [0, 2]]], dtype=uint8)
    >>> compress(np.array([[1, 2, 3, 0]], np.int8))
    Traceback (most recent call last):
    ...
    gossamer_ir.errors.FormatError: Row 0 has 3 elements that are not zero in columns 0 to 3; expected at \
most 2, for the pattern 2:4. 1 group does not have the pattern. [n_m.group]
    """
    require_two_dimensions("matrix", matrix)
    operand = dtype_of_operand(matrix, dtype)
    columns = groups_of_word(metadata_dtype) * operand.pattern.group
    units = _units(pad_matrix(matrix, rows=1, columns=columns), operand)
    nibbles = np.take(np.array(operand.pattern.nibbles, np.uint8), _sets_of_units(units, operand))
    if not nibbles.all():
        raise _group_error(units, nibbles, operand)
    values = _elements(_kept_units(units, nibbles, operand), operand)
    metadata = words_of_nibbles(nibbles, metadata_dtype)
    return CompressedMatrix(values, metadata, operand.name, (matrix.shape[0], matrix.shape[1]))


@typed
def decompress(matrix: CompressedMatrix) -> Array:
    """Return the dense array of a compressed matrix, in the dtype of its values and of its shape.

    Raises `FormatError` (`n_m.metadata`) with the position of the first illegal nibble.

    >>> decompress(compress(np.array([[0, 0, 8, 0, 9]], np.int8)))
    array([[0, 0, 8, 0, 9]], dtype=int8)
    """
    operand, nibbles = matrix.operand, matrix.nibbles()
    require_legal(nibbles, operand.pattern)
    slots = _unit_view(matrix.values, operand)
    units = np.zeros((nibbles.size, operand.pattern.units), slots.dtype)
    units.reshape(-1)[_flat_positions(nibbles, operand)] = slots.reshape(
        nibbles.size, operand.pattern.slots
    )
    rows = units.reshape(matrix.shape[0], matrix.groups * operand.pattern.units)
    return _elements(rows, operand)[:, : matrix.shape[1]]


def _units(matrix: Array, operand: OperandDType) -> Array:
    """Return the bits of the units of a matrix, rows by groups by units of a group."""
    bits = _unit_view(matrix, operand)
    pattern = operand.pattern
    return bits.reshape(matrix.shape[0], matrix.shape[1] // pattern.group, pattern.units)


def _unit_view(matrix: Array, operand: OperandDType) -> Array:
    """Return the elements of a matrix as bits, those of a pair as one number."""
    return np.ascontiguousarray(matrix).view(f"uint{operand.unit_bits}")


def _elements(units: Array, operand: OperandDType) -> Array:
    """Return units (rows by units) as elements."""
    return np.ascontiguousarray(units).view(operand.stored_as)


def _is_zero(units: Array, operand: OperandDType) -> Array:
    """Return where all bits but that of the sign are 0."""
    if not operand.is_signed_zero:
        return np.asarray(units == 0)
    # Shifting the sign out leaves the other bits, and needs no mask of the dtype.
    return np.asarray(units << 1 == 0)


def _sets_of_units(units: Array, operand: OperandDType) -> Array:
    """Return for each group the set of its units that are not zero, bit u for unit u."""
    is_kept = ~_is_zero(units, operand)
    sets = is_kept[..., 0].astype(np.uint8)
    for unit in range(1, operand.pattern.units):
        sets |= is_kept[..., unit].view(np.uint8) << unit
    return sets


def _flat_positions(nibbles: Array, operand: OperandDType) -> Array:
    """Return where the unit of each slot is among all units, groups by slots."""
    pattern = operand.pattern
    first = np.arange(nibbles.size, dtype=np.int64) * pattern.units
    return first[:, None] + pattern.slot_indices(nibbles.reshape(-1))


def _kept_units(units: Array, nibbles: Array, operand: OperandDType) -> Array:
    """Return the units of the slots, rows by slots; those that are zero without a sign."""
    kept = np.take(units.reshape(-1), _flat_positions(nibbles, operand))
    if operand.is_signed_zero:
        kept[_is_zero(kept, operand)] = 0
    return kept.reshape(nibbles.shape[0], nibbles.shape[1] * operand.pattern.slots)


def _group_error(units: Array, nibbles: Array, operand: OperandDType) -> FormatError:
    wrong, pattern = np.argwhere(nibbles == 0), operand.pattern
    row, group = map(int, wrong[0])
    count = int(np.count_nonzero(~_is_zero(units[row, group], operand)))
    first = group * pattern.group
    noun, plural = (
        ("element that is not zero", "elements that are not zero")
        if pattern.unit_columns == 1
        else ("pair of elements that are not both zero", "pairs of elements that are not both zero")
    )
    verb = "does" if len(wrong) == 1 else "do"
    return FormatError(
        "n_m.group",
        f"Row {row} has {amount(count, noun, plural)} in columns {first} to {first + pattern.group - 1}; "
        f"expected at most {pattern.slots}, for the pattern {pattern.name}.",
        hint=f"{amount(len(wrong), 'group')} {verb} not have the pattern.",
    )
