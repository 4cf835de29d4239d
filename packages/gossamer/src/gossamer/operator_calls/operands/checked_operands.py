"""The checked operands of a call."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeGuard, TypeVar

from gossamer.operator_calls.operands.device_operands import common_device
from gossamer.operator_calls.operands.matrix_in_parts import MatrixInParts
from gossamer.operator_calls.operands.matrix_operand import KernelMatrix, MatrixOperand
from gossamer.operator_calls.operator_kernels import KernelSpec
from gossamer.operator_calls.operator_program import NUMBER_PARAMETERS, OperatorProgram
from gossamer_backend import Device
from gossamer_formats import Array
from gossamer_ir.core.dtypes import SUM_DTYPES

M = TypeVar("M", bound=MatrixOperand, covariant=True)


class Operands(NamedTuple, Generic[M]):
    """The checked operands of one call, and the form of its result."""

    matrix: M
    dense: dict[str, Array]
    """The dense arrays by parameter."""
    output: str
    """The parameter of the result."""
    shape: tuple[int, ...]
    """The shape of the result."""
    dtype: str
    """The dtype of the operands."""
    features: int | None = None
    """The number of columns of the dense operands; None if they are vectors."""
    sums: str | None = None
    """The dtype in which products are added; None for that of `dtype`."""

    @property
    def result_dtype(self) -> str:
        """The dtype of the result, in which products are added."""
        return self.sums or SUM_DTYPES[self.dtype]

    @property
    def inputs(self) -> tuple[Array, ...]:
        """All arrays that the result must not overlap."""
        return (*self.dense.values(), *self.matrix.memory)

    def device(self, out: Any = None) -> Device:
        """Return the device of all arrays, and of `out` if it is given; raise `ArgumentError`
        (`operand.device`) if they are on several."""
        dense = [array for name, array in self.dense.items() if name not in NUMBER_PARAMETERS]
        outputs = () if out is None else (out,)
        return common_device(
            {"the matrix": self.matrix.memory, "a dense operand": dense, "out": outputs}
        )

    @property
    def products(self) -> int:
        """The number of products that a kernel computes."""
        return self.matrix.value_count * (1 if self.features is None else self.features)

    @property
    def passed(self) -> tuple[str, ...]:
        """The parameters for the arrays that each call passes."""
        return (*self.dense, self.output)

    @property
    def plan_sizes(self) -> tuple[int, ...]:
        """The sizes of the first dense operand after the first one, which are part of the key of a plan."""
        first, *_ = self.dense.values()
        sizes: tuple[int, ...] = first.shape[1:]
        return sizes


def is_in_parts(operands: Operands[Any]) -> TypeGuard[Operands[MatrixInParts]]:
    """Return whether the matrix is in parts."""
    return isinstance(operands.matrix, MatrixInParts)


def has_one_kernel(operands: Operands[Any]) -> TypeGuard[Operands[KernelMatrix]]:
    """Return whether one kernel computes with the whole matrix."""
    return not is_in_parts(operands)


def kernel_spec(operands: Operands[KernelMatrix], program: OperatorProgram) -> KernelSpec:
    """Return which kernel of a program computes with the operands."""
    return operands.matrix.kernel_spec(program, dtype=operands.dtype, features=operands.features)


def kernel_arguments(
    operands: Operands[KernelMatrix], program: OperatorProgram, result: Array
) -> dict[str, Any]:
    """Return all arguments of the kernel of a program, which computes the result in this array."""
    return operands.matrix.arguments(program, {**operands.dense, operands.output: result})
