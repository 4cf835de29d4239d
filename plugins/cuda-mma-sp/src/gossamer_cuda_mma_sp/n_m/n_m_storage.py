"""Compressed N:M matrices from and to the arrays of the formats `n_m` and `v_n_m`."""

from __future__ import annotations

import math

import numpy as np

from gossamer_cuda_mma_sp.n_m.compress import compress
from gossamer_cuda_mma_sp.n_m.compressed_matrix import CompressedMatrix
from gossamer_cuda_mma_sp.n_m.metadata_words import require_legal
from gossamer_cuda_mma_sp.n_m.operand_dtypes import OperandDType, operand_dtype_named
from gossamer_ir.core.bfloat16 import decode_bfloat16, encode_bfloat16, round_bfloat16
from gossamer_ir.errors import ArgumentError
from gossamer_support.arrays import Array
from gossamer_support.message_texts import amount
from gossamer_support.typed_calls import typed

DATA_DTYPES = ("float32", "float64")
"""The dtypes of the elements of tensors."""


@typed
def from_n_m(
    indices: Array,
    data: Array,
    *,
    m: int,
    n: int,
    group: int,
    slots: int,
    dtype: str,
    metadata_dtype: str = "int16",
) -> CompressedMatrix:
    """Return the compressed matrix of a tensor in the format `n_m`, from its arrays and sizes.

    `indices` (uint8) and `data` (float32 or float64) have an element for each slot of each group of each of
    `m` rows; a slot with the index `group` is unused. `group` must be that of the pattern of `dtype`: 4
    columns, 2 for tfloat32, 8 for int4 and uint4. There may be more or fewer slots than the pattern has, if
    no group has too many elements. Elements are rounded to `dtype`; for integers they must be values of it.

    Raises `ArgumentError`: `n_m.dtype` (also float8, to which nothing is rounded), `n_m.arrays`
    (arrays or sizes that do not fit), `n_m.range`, `n_m.metadata_dtype`. Raises `FormatError`
    (`n_m.group`).

    >>> indices, data = np.array([1, 4], np.uint8), np.array([5.0, 0.0], np.float32)
    >>> from_n_m(indices, data, m=1, n=4, group=4, slots=2, dtype="float16").values[0, :2]
    array([0., 5.], dtype=float16)
    """
    operand = operand_dtype_named(dtype)
    groups = _required_groups(n, group, operand.pattern.group)
    _require_slots(indices, data, (m, groups, slots), group)
    dense = np.zeros((m, groups, group + 1), data.dtype)
    # Unused slots are in the column after the group, which is cut off.
    at = indices.reshape(m, groups, slots).astype(np.int64)
    np.put_along_axis(dense, at, data.reshape(m, groups, slots), axis=2)
    rows = dense[..., :group].reshape(m, groups * group)[:, :n]
    return compress(_stored_elements(rows, operand), dtype, metadata_dtype=metadata_dtype)


@typed
def to_n_m(matrix: CompressedMatrix) -> dict[str, Array | int]:
    """Return the arrays and sizes of a tensor in the format `n_m` with the elements of a compressed matrix.

    They are `indices` (uint8), `data` (float32), `slots` and `group`, as `gossamer_formats.from_arrays` takes
    them with the shape of the matrix: 2 slots of 4 columns, 1 of 2 for tfloat32, 4 of 8 for int4 and uint4.
    Slots with a zero are unused, and follow the others.

    Raises `ArgumentError` (`n_m.dtype`) for float8, and `FormatError` (`n_m.metadata`).

    >>> to_n_m(compress(np.array([[0, 5, 0, 0]], np.int8)))["indices"]
    array([1, 4], dtype=uint8)
    """
    operand, width = matrix.operand, matrix.operand.pattern.unit_columns
    _require_numbers(operand)
    require_legal(matrix.nibbles(), operand.pattern)
    group, rows = operand.pattern.group, matrix.shape[0]
    groups, slots = -(-matrix.shape[1] // group), group // 2
    units = operand.pattern.slot_indices(matrix.nibbles()[:, :groups])
    # An index of each element of a unit.
    columns = units[..., None] * width + np.arange(width, dtype=np.uint8)
    columns = columns.reshape(rows, groups, slots)
    data = _numbers(matrix.values.reshape(rows, matrix.groups, slots)[:, :groups], operand)
    order = np.argsort(data == 0, axis=2, kind="stable")
    data = np.take_along_axis(data, order, 2)
    indices = np.take_along_axis(columns, order, 2)
    return {
        "indices": np.where(data == 0, np.uint8(group), indices).reshape(-1),
        "data": np.where(data == 0, np.float32(0), data).reshape(-1),
        "slots": slots,
        "group": group,
    }


@typed
def from_v_n_m(
    columns: Array,
    indices: Array,
    data: Array,
    *,
    m: int,
    n: int,
    rows: int,
    group: int,
    chosen: int,
    slots: int,
    dtype: str,
    metadata_dtype: str = "int16",
) -> tuple[CompressedMatrix, Array]:
    """Return a tensor in the format `v_n_m` as a compressed matrix over chosen columns, and these columns.

    The arguments are the arrays and sizes of the tensor. In each block of `rows` rows and each group of
    `group` columns, as many columns are chosen as a group of the pattern of `dtype` has: 4, or 2 for
    tfloat32.

    The compressed matrix has the rows of the tensor, and all chosen columns. Its column c, in the rows of
    block b, is the column `columns[b, c]` of the tensor, where `columns` is the second result (int64,
    blocks by chosen columns): a kernel gathers these rows of the dense operand (VENOM, Castro and others,
    SC 2023). Chosen columns after the last column of the tensor have no elements; the second result has the
    last column for them.

    Raises `ArgumentError` and `FormatError` as `from_n_m`.

    >>> columns, indices = np.array([0, 3, 5, 7], np.int32), np.array([1, 2], np.uint8)
    >>> data, sizes = np.array([6.0, 8.0]), {"m": 1, "n": 8, "rows": 1, "group": 8, "chosen": 4, "slots": 2}
    >>> matrix, gathered = from_v_n_m(columns, indices, data, **sizes, dtype="float16")
    >>> matrix.values[0, :2], gathered
    (array([6., 8.], dtype=float16), array([[0, 3, 5, 7]]))
    """
    _required_groups(n, chosen, operand_dtype_named(dtype).pattern.group)
    _require_blocks(rows, group, chosen)
    blocks, groups = -(-m // rows), -(-n // group)
    _require_slots(indices, data, (blocks, groups, rows, slots), chosen)
    _require_columns(columns, blocks, groups, chosen)
    matrix = from_n_m(
        *(_in_row_order(array, (blocks, groups, rows, slots), m) for array in (indices, data)),
        m=m,
        n=groups * chosen,
        group=chosen,
        slots=slots,
        dtype=dtype,
        metadata_dtype=metadata_dtype,
    )
    group_columns = columns.reshape(blocks, groups, chosen).astype(np.int64)
    tensor_columns = group_columns + np.arange(groups)[:, None] * group
    return matrix, np.minimum(tensor_columns.reshape(blocks, groups * chosen), n - 1)


def _in_row_order(array: Array, shape: tuple[int, int, int, int], m: int) -> Array:
    """Return the slots of the first `m` rows, one row after the other, from those by blocks, groups, rows of
    a block and slots."""
    blocks, groups, rows, slots = shape
    by_rows = array.reshape(shape).transpose(0, 2, 1, 3).reshape(blocks * rows, groups * slots)
    return by_rows[:m].reshape(-1)


def _required_groups(n: int, group: int, expected: int) -> int:
    """Return the number of groups in a row of n columns. Raise an `ArgumentError` if they do not have the
    columns of a group of the pattern."""
    if group != expected:
        raise ArgumentError(
            "n_m.arrays",
            f"Slots are chosen from {amount(group, 'column')}; expected {expected}, those of a group of the "
            "pattern.",
        )
    return -(-n // group)


def _require_blocks(rows: int, group: int, chosen: int) -> None:
    if rows < 1 or group < chosen:
        raise ArgumentError(
            "n_m.arrays",
            f"Blocks have {amount(rows, 'row')}, and {chosen} of {group} columns are chosen; expected at "
            "least 1 row, and at most all columns.",
        )


def _require_columns(columns: Array, blocks: int, groups: int, chosen: int) -> None:
    if columns.size != blocks * groups * chosen:
        raise ArgumentError(
            "n_m.arrays",
            f"There are {amount(columns.size, 'chosen column')}; expected {blocks * groups * chosen}: "
            f"{amount(blocks, 'block')} by {amount(groups, 'group')} by {chosen}.",
        )


def _require_slots(indices: Array, data: Array, sizes: tuple[int, ...], group: int) -> None:
    """Raise an `ArgumentError` unless indices and data have an element for each slot, and indices are columns
    of a group."""
    count = math.prod(sizes)
    if min(sizes) < 0 or indices.size != count or data.size != count:
        raise ArgumentError(
            "n_m.arrays",
            f"There are {amount(indices.size, 'index', 'indices')} and {amount(data.size, 'element')}; "
            f"expected {count}: {' by '.join(map(str, sizes))}.",
        )
    if indices.dtype.name != "uint8" or data.dtype.name not in DATA_DTYPES:
        raise ArgumentError(
            "n_m.arrays",
            f"The indices are {indices.dtype.name}, the data {data.dtype.name}; expected uint8, and "
            f"{' or '.join(DATA_DTYPES)}.",
        )
    if indices.size and int(indices.max()) > group:
        raise ArgumentError(
            "n_m.arrays",
            f"An index is {int(indices.max())}; expected columns 0 to {group - 1} of a group, or {group} "
            "for an unused slot.",
        )


def _require_numbers(operand: OperandDType) -> None:
    if operand.name.startswith("float8"):
        raise ArgumentError(
            "n_m.dtype", f"{operand.name} is not converted to or from other dtypes."
        )


def _stored_elements(numbers: Array, operand: OperandDType) -> Array:
    """Return floats as elements of a dtype. Raises `ArgumentError`."""
    _require_numbers(operand)
    if operand.name == "bfloat16":
        return np.asarray(encode_bfloat16(round_bfloat16(numbers)))
    stored = np.dtype(operand.stored_as)
    if stored.kind == "f":
        return numbers.astype(stored)
    least, most = operand.limits or (np.iinfo(stored).min, np.iinfo(stored).max)
    is_value = (numbers >= least) & (numbers <= most) & (np.trunc(numbers) == numbers)
    if not is_value.all():
        raise ArgumentError(
            "n_m.range",
            f"An element is {numbers[~is_value][0]}; expected integers from {least} to {most}, for "
            f"{operand.name}.",
        )
    return numbers.astype(stored)


def _numbers(elements: Array, operand: OperandDType) -> Array:
    """Return elements of a dtype as float32, which has all their values."""
    if operand.name == "bfloat16":
        return np.asarray(decode_bfloat16(elements))
    return elements.astype(np.float32)
