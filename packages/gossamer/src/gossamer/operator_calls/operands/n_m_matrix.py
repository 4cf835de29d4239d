"""N:M matrices as operands: for each group of columns of a row, values and the indices of their units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from gossamer.operator_calls.operator_kernels import KernelSpec
from gossamer.operator_calls.operator_program import (
    MatrixParameters,
    OperatorProgram,
    StructureParameters,
    Variant,
    program_for,
)
from gossamer_formats import Array, SparseTensor
from gossamer_formats.internal_api import VALUE_DTYPES, MemoKey, converted_values
from gossamer_heuristics.n_m_tiles import USUAL_SIZE
from gossamer_ir.core.dtypes import SUM_DTYPES
from gossamer_ir.errors import ArgumentError, FormatError
from gossamer_ir.interchange.records import Stats
from gossamer_machine.intrinsics.n_m_operands import SPECIAL_OPERANDS, NMOperands, n_m_operands
from gossamer_support.message_texts import amount, either

_ROW_CLASSES = (64, 256, 1024, 4096)
"""The rows of classes of matrices that share kernels: a tile of 128 rows pays from some hundreds on."""

N_M_PARAMETERS = MatrixParameters(
    StructureParameters(("a", "indices"), ("m", "groups")), ("I", "G", "J")
)
"""The parameters for an N:M matrix: the columns of a row are in groups, each with some slots."""


class NMMatrix(msgspec.Struct, frozen=True, eq=False):
    """A matrix with the pattern of its operands. `indices` (uint8) are rows by groups by slots, and `values`
    have another dimension for the columns of a unit if that is a pair. All slots are used: the indices of a
    group increase, and a slot without a nonzero has zeros."""

    values: Array
    indices: Array
    columns: int
    dtype: str
    """The dtype of the values; those of bfloat16 are stored as uint16."""
    operands: str
    """The dtype in which products are computed: that of the values, or one of `SPECIAL_OPERANDS`."""

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.values.shape[0])

    @property
    def groups(self) -> int:
        """The number of groups of columns; the last one may be incomplete."""
        return int(self.values.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return self.rows, self.columns

    @property
    def value_count(self) -> int:
        """The number of values."""
        return int(self.values.size)

    @property
    def memory(self) -> tuple[Array, Array]:
        """Both arrays."""
        return self.values, self.indices

    @property
    def plan_key(self) -> None:
        """None: calls have no plans, since most products are those of a library."""
        return None

    @property
    def structure_parameters(self) -> StructureParameters:
        """The parameters of kernels for its arrays and for its sizes."""
        return N_M_PARAMETERS.structure

    @property
    def verified(self) -> tuple[str, ...]:
        """The parameters for the indices, which are in order when they are made, and for values whose limits
        were checked then."""
        has_limits = n_m_operands(self.operands).limits is not None
        return ("a", "indices") if has_limits else ("indices",)

    def kernel_spec(
        self, program: OperatorProgram, *, dtype: str, features: int | None
    ) -> KernelSpec:
        """Return which kernel of a program computes with the matrix."""
        variant = Variant(dtype, features=features)
        return KernelSpec(program_for(program, self.operands), variant, self._class_stats())

    def _class_stats(self) -> Stats:
        """Return the stats of a class of matrices, by which rules choose a schedule: it depends on the number
        of rows only."""
        rows = max((rows for rows in _ROW_CLASSES if rows <= self.rows), default=_ROW_CLASSES[0])
        return Stats(rows, USUAL_SIZE, rows * USUAL_SIZE // 2, USUAL_SIZE // 2, empty_rows=0)

    def arguments(self, program: OperatorProgram, dense: Mapping[str, Any]) -> dict[str, Any]:
        """Return all arguments of a kernel, with these `dense` ones."""
        arrays, sizes = self.memory, (self.rows, self.groups)
        params = self.structure_parameters
        names, values = (*params.arrays, *params.sizes), (*arrays, *sizes)
        return {**dict(zip(names, values, strict=True)), **dense}


_COMPRESSED = {
    name: MemoKey[NMMatrix](f"the matrix for products in {name}")
    for name in (*VALUE_DTYPES, *SPECIAL_OPERANDS)
}


def n_m_matrix(matrix: Any, operands: str | None = None) -> NMMatrix:
    """Return a matrix with the pattern of operands, by default 2:4 and of its dtype. A tensor is compressed
    once for each dtype of operands.

    A slot without a nonzero gets the first unit of the group that no other slot has. Raises `FormatError`
    (`format.n_m`) for a group with more nonzeros than slots, and `ArgumentError`: `operand.kind`,
    `operand.shape` (not two dimensions), `operand.dtype` (none of `SUM_DTYPES`, or not that in which operands
    are stored), `operand.range` (an element beyond the limits of operands).

    >>> packed = n_m_matrix(np.array([[0, 0, 3, 0], [0, 1, 0, 2]], np.int8))
    >>> packed.values.tolist(), packed.indices.tolist()
    ([[[0, 3]], [[1, 2]]], [[[0, 2]], [[1, 3]]])
    >>> n_m_matrix(np.array([[0, 3, 2, 0]], np.float32), "tfloat32").values.tolist()
    [[[3.0], [2.0]]]
    """
    if isinstance(matrix, SparseTensor):
        name = required_operands(operands, matrix.value_dtype)
        tensor = unchanging_tensor(matrix)
        return _COMPRESSED[name].get(tensor, lambda tensor: _matrix_from_tensor(tensor, name))
    dense = required_array(matrix)
    return _matrix_from_dense(dense, required_operands(operands, dense.dtype.name))


def unchanging_tensor(tensor: SparseTensor) -> SparseTensor:
    """Return a tensor that may keep what is derived from it: a copy of one that borrows its arrays, which the
    caller can write to."""
    return SparseTensor(tensor.storage) if tensor.is_borrowed else tensor


def required_operands(operands: str | None, stored: str) -> str:
    """Return the dtype in which products of elements are computed: `operands` if that is given, else that in
    which they are stored. Raise `ArgumentError` (`operand.dtype`) if they cannot be computed in it.

    >>> required_operands(None, "float16"), required_operands("int4", "int8")
    ('float16', 'int4')
    """
    allowed = (
        stored,
        *(name for name, special in SPECIAL_OPERANDS.items() if special.stored_as == stored),
    )
    if operands is None or operands in allowed:
        return operands or stored
    # It has any type: nothing has checked it yet.
    special = SPECIAL_OPERANDS.get(str(operands))
    raise ArgumentError(
        "operand.dtype",
        f"The products of a matrix of {stored} cannot be computed in '{operands}'; expected "
        f"{either(allowed)}.",
        hint="" if special is None else f"Convert both operands to {special.stored_as}.",
    )


def _matrix_from_tensor(tensor: SparseTensor, operands: str) -> NMMatrix:
    _require_two_dimensions(tensor.shape)
    dense, dtype = tensor.toarray(), tensor.value_dtype
    # NumPy computes with values of bfloat16 as float32, so that rounding them changes nothing.
    is_wider = dtype != dense.dtype.name
    compressed = _matrix_from_dense(dense, dense.dtype.name if is_wider else operands)
    if not is_wider:
        return compressed
    values = converted_values(compressed.values, compressed.dtype, dtype)
    return replace(compressed, values=values, dtype=dtype, operands=operands)


def required_array(matrix: Any) -> Array:
    """Return a matrix of NumPy or SciPy as a dense array; raise `ArgumentError` (`operand.kind`,
    `operand.shape`, `operand.dtype`) for anything else, or a dtype that is not multiplied."""
    if not isinstance(matrix, np.ndarray) and not hasattr(matrix, "toarray"):
        raise ArgumentError(
            "operand.kind",
            f"The matrix has the type '{type(matrix).__name__}'; expected a NumPy array, a SparseTensor or a "
            "SciPy matrix.",
        )
    dense: Array = matrix if isinstance(matrix, np.ndarray) else np.asarray(matrix.toarray())
    _require_matrix(dense)
    return dense


def require_n_m(dense: Array) -> None:
    """Raise unless a dense array is 2:4; errors are those of `n_m_matrix`."""
    read = n_m_operands(dense.dtype.name)
    _require_pattern(_is_used(_units(dense, read), read), read, dense.shape[1])


def _matrix_from_dense(dense: Array, operands: str) -> NMMatrix:
    read, columns = n_m_operands(operands), dense.shape[1]
    units = _units(dense, read)
    is_used = _is_used(units, read)
    _require_pattern(is_used, read, columns)
    if read.limits is not None:
        _require_range(dense, operands, read.limits)
    # Units with nonzeros first, then the first ones of zeros; both in the order of columns.
    chosen = np.argsort(~is_used, axis=-1, kind="stable")[..., : read.slots]
    indices = np.sort(chosen, axis=-1)
    values = np.take_along_axis(units, indices[..., None], axis=-2)
    return NMMatrix(
        np.ascontiguousarray(values[..., 0] if read.unit_columns == 1 else values),
        np.ascontiguousarray(indices.astype(np.uint8)),
        columns,
        dense.dtype.name,
        operands,
    )


def _require_two_dimensions(shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        raise ArgumentError(
            "operand.shape", f"The matrix has the shape {shape}; expected two dimensions."
        )


def _require_matrix(dense: Array) -> None:
    _require_two_dimensions(dense.shape)
    if dense.dtype.name not in SUM_DTYPES or not dense.dtype.isnative:
        raise ArgumentError(
            "operand.dtype",
            f"The matrix has the dtype {dense.dtype}; expected {either(SUM_DTYPES)}.",
        )


def _units(dense: Array, read: NMOperands) -> Array:
    """Return the elements of a matrix by rows, groups, units of a group and columns of a unit; the last group
    is filled with zeros."""
    rows, columns = dense.shape
    groups = -(-columns // read.group)
    padded = np.zeros((rows, groups * read.group), dense.dtype)
    padded[:, :columns] = dense
    return padded.reshape(rows, groups, read.units, read.unit_columns)


def _is_used(units: Array, read: NMOperands) -> Array:
    """Return whether units have a nonzero. A zero of encoded floats may have a sign, the highest bit."""
    bits = units << 1 if read.decoded_as else units
    return np.asarray((bits != 0).any(axis=-1))


def _require_pattern(is_used: Array, read: NMOperands, columns: int) -> None:
    counts = np.count_nonzero(is_used, axis=-1)
    wrong = np.argwhere(counts > read.slots)
    if not wrong.size:
        return
    row, group = map(int, wrong[0])
    last = min((group + 1) * read.group, columns) - 1
    is_paired = read.unit_columns > 1
    number = amount(
        int(counts[row, group]),
        *(("pair with nonzeros", "pairs with nonzeros") if is_paired else ("nonzero",)),
    )
    expected = amount(read.slots, "such pair") if is_paired else str(read.slots)
    raise FormatError(
        "format.n_m",
        f"Row {row} has {number} in the columns {group * read.group} to {last}; a {read.pattern} matrix has "
        f"at most {expected} in each {read.group} columns.",
        hint=""
        if is_paired
        else f'Prune it with gossamer.prune(A, "{read.pattern}"), which drops elements.',
    )


def _require_range(dense: Array, operands: str, limits: tuple[int, int]) -> None:
    """Raise `ArgumentError` (`operand.range`) unless all elements are values of operands."""
    least, most = limits
    wrong = np.argwhere((dense < least) | (dense > most))
    if wrong.size:
        row, column = map(int, wrong[0])
        raise ArgumentError(
            "operand.range",
            f"The element of row {row} and column {column} is {dense[row, column]}; expected values of "
            f"{operands}, from {least} to {most}.",
        )
