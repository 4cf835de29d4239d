"""2:4 matrices as operands: two values and their indices for each four columns of a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from gossamer.operator_calls.operator_kernels import KernelRequest
from gossamer.operator_calls.operator_program import OperatorProgram, Variant
from gossamer_formats import Array, SparseTensor
from gossamer_formats.internal_api import VALUE_DTYPES, MemoKey, converted_values
from gossamer_ir.errors import ArgumentError, FormatError
from gossamer_ir.support.message_texts import either

SLOTS, GROUP = 2, 4


class NMMatrix(msgspec.Struct, frozen=True, eq=False):
    """A 2:4 matrix: `values` and `indices` (uint8) are rows by groups by 2. All slots are used: the indices
    of a group increase, and a slot without a nonzero has a zero."""

    values: Array
    indices: Array
    columns: int
    dtype: str
    """The dtype of the values; those of bfloat16 are stored as uint16."""

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.values.shape[0])

    @property
    def groups(self) -> int:
        """The number of groups of four columns; the last one may be incomplete."""
        return int(self.values.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return self.rows, self.columns

    @property
    def value_count(self) -> int:
        """The number of slots."""
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
    def structure(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The parameters of kernels for its arrays and for its sizes."""
        return ("a", "indices"), ("m", "groups")

    @property
    def verified(self) -> tuple[str, ...]:
        """The parameter for the indices, which are in order when they are made."""
        return ("indices",)

    def request(
        self, program: OperatorProgram, *, dtype: str, features: int | None
    ) -> KernelRequest:
        """Return the request for the kernel of a program."""
        return KernelRequest(program, Variant(dtype, features=features))

    def arguments(self, program: OperatorProgram, dense: Mapping[str, Any]) -> dict[str, Any]:
        """Return all arguments of a kernel, with these `dense` ones."""
        arrays, sizes = self.memory, (self.rows, self.groups)
        names, values = sum(self.structure, ()), (*arrays, *sizes)
        return {**dict(zip(names, values, strict=True)), **dense}


_COMPRESSED = MemoKey[NMMatrix]("the matrix as 2:4 for products")


def n_m_matrix(matrix: Any) -> NMMatrix:
    """Return a matrix as 2:4. A tensor is compressed once.

    A slot without a nonzero gets the first column of the group that no other slot has. Raises `FormatError`
    (`format.n_m`) for a group with more than two nonzeros, and `ArgumentError`: `operand.kind`,
    `operand.shape` (not two dimensions), `operand.dtype` (none of `VALUE_DTYPES`).

    >>> packed = n_m_matrix(np.array([[0, 0, 3, 0], [0, 1, 0, 2]], np.int8))
    >>> packed.values.tolist(), packed.indices.tolist()
    ([[[0, 3]], [[1, 2]]], [[[0, 2]], [[1, 3]]])
    """
    if isinstance(matrix, SparseTensor):
        return _COMPRESSED.get(matrix, _matrix_from_tensor)
    return _matrix_from_dense(required_array(matrix))


def _matrix_from_tensor(tensor: SparseTensor) -> NMMatrix:
    compressed = _matrix_from_dense(tensor.toarray())
    dtype = tensor.value_dtype
    if dtype == compressed.dtype:
        return compressed
    # NumPy computes with values of bfloat16 as float32, so that rounding them changes nothing.
    values = converted_values(compressed.values, compressed.dtype, dtype)
    return replace(compressed, values=values, dtype=dtype)


def required_array(matrix: Any) -> Array:
    """Return a matrix of NumPy or SciPy as a dense array; raise `ArgumentError` (`operand.kind`) for anything
    else."""
    if isinstance(matrix, np.ndarray):
        return matrix
    if not hasattr(matrix, "toarray"):
        raise ArgumentError(
            "operand.kind",
            f"The matrix has the type '{type(matrix).__name__}'; expected a NumPy array, a SparseTensor or a "
            "SciPy matrix.",
        )
    dense: Array = np.asarray(matrix.toarray())
    return dense


def require_n_m(dense: Array) -> None:
    """Raise unless a dense array is 2:4; errors are those of `n_m_matrix`."""
    _require_two(_members(dense) != 0, dense.shape[1])


def _matrix_from_dense(dense: Array) -> NMMatrix:
    members = _members(dense)
    columns = dense.shape[1]
    is_nonzero = members != 0
    _require_two(is_nonzero, columns)
    # Nonzeros first, then the first zeros; both in the order of columns.
    chosen = np.argsort(~is_nonzero, axis=-1, kind="stable")[..., :SLOTS]
    indices = np.sort(chosen, axis=-1)
    values = np.ascontiguousarray(np.take_along_axis(members, indices, axis=-1))
    return NMMatrix(
        values, np.ascontiguousarray(indices.astype(np.uint8)), columns, dense.dtype.name
    )


def _members(dense: Array) -> Array:
    """Return the elements of a matrix by rows, groups and columns of a group; the last group is filled with
    zeros."""
    if dense.ndim != 2:
        raise ArgumentError(
            "operand.shape", f"The matrix has the shape {dense.shape}; expected two dimensions."
        )
    if dense.dtype.name not in VALUE_DTYPES or not dense.dtype.isnative:
        raise ArgumentError(
            "operand.dtype",
            f"The matrix has the dtype {dense.dtype}; expected {either(VALUE_DTYPES)}.",
        )
    rows, columns = dense.shape
    groups = -(-columns // GROUP)
    padded = np.zeros((rows, groups * GROUP), dense.dtype)
    padded[:, :columns] = dense
    return padded.reshape(rows, groups, GROUP)


def _require_two(is_nonzero: Array, columns: int) -> None:
    counts = np.count_nonzero(is_nonzero, axis=-1)
    wrong = np.argwhere(counts > SLOTS)
    if wrong.size:
        row, group = map(int, wrong[0])
        last = min(group * GROUP + GROUP, columns) - 1
        raise FormatError(
            "format.n_m",
            f"Row {row} has {counts[row, group]} nonzeros in the columns {group * GROUP} to {last}; a 2:4 "
            f"matrix has at most {SLOTS} in each {GROUP} columns.",
            hint='Prune it with gossamer.prune(A, "2:4"), which drops elements.',
        )
