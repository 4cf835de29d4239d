"""Matrices as operands: what calls need of one, and how it is chosen for an argument of a user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from gossamer.operator_calls.operands.csr_arrays import ArraysMatrix, arrays_matrix
from gossamer.operator_calls.operands.csr_matrix import CsrMatrix, csr_matrix, csr_pattern
from gossamer.operator_calls.operands.matrix_in_parts import MatrixInParts, is_decomposition
from gossamer.operator_calls.operands.stored_matrix import stored_matrix
from gossamer.operator_calls.operator_kernels import KernelSpec
from gossamer.operator_calls.operator_program import OperatorProgram, StructureParameters
from gossamer_formats import Array
from gossamer_ir.interchange.records import Target


class MatrixOperand(Protocol):
    """A matrix that was checked for one call: a `KernelMatrix`, or a `MatrixInParts`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of rows and columns."""

    @property
    def dtype(self) -> str:
        """The dtype of the values."""

    @property
    def value_count(self) -> int:
        """The number of values."""

    @property
    def memory(self) -> tuple[Array, ...]:
        """All its arrays, which the result must not overlap."""


class KernelMatrix(MatrixOperand, Protocol):
    """A matrix in one format, with which one kernel computes: a `CsrMatrix`, a `StoredMatrix`, an
    `ArraysMatrix`, or an `NMMatrix`."""

    @property
    def plan_key(self) -> object | None:
        """The key of the plans that fit the matrix; None if calls with it have no plans."""

    @property
    def structure_parameters(self) -> StructureParameters:
        """The parameters of kernels for its arrays and for its sizes, for plans."""

    @property
    def verified(self) -> tuple[str, ...]:
        """The parameters for arrays whose contents were checked when the matrix was."""

    def kernel_spec(
        self, program: OperatorProgram, /, *, dtype: str, features: int | None
    ) -> KernelSpec:
        """Return which kernel of a program computes with the matrix."""

    def arguments(self, program: OperatorProgram, dense: Mapping[str, Array], /) -> dict[str, Any]:
        """Return all arguments of a kernel, with these `dense` ones."""


def matrix_operand(
    program: OperatorProgram, matrix: Any, *, target: str | Target | None = None
) -> MatrixOperand:
    """Return a matrix as the operand of a program: a decomposition in its parts, a matrix in its own format
    if the program needs no conversion of that on the target, anything else in CSR. Errors as those of
    `csr_matrix`."""
    if is_decomposition(matrix):
        return MatrixInParts(matrix)
    by_arrays = arrays_matrix(matrix, reads_values=True)
    return by_arrays or stored_matrix(program, matrix, target=target) or csr_matrix(matrix)


def pattern_operand(matrix: Any, *, dtype: str | None) -> CsrMatrix | ArraysMatrix | MatrixInParts:
    """Return a matrix as the operand of a program that ignores its values: a decomposition in its parts,
    anything else in CSR, as `csr_pattern` returns it."""
    if is_decomposition(matrix):
        return MatrixInParts(matrix)
    by_arrays = arrays_matrix(matrix, reads_values=False)
    return by_arrays or csr_pattern(matrix, dtype=dtype)
