"""The operands of products: a sparse matrix and a dense array with a row for each of its columns."""

from __future__ import annotations

from typing import Any

from gossamer.operator_calls.operands.checked_operands import Operands
from gossamer.operator_calls.operands.dense_operands import dense_operand
from gossamer.operator_calls.operands.device_operands import shape_of_array
from gossamer.operator_calls.operands.matrix_operand import MatrixOperand, matrix_operand
from gossamer.operator_calls.operator_program import OperatorProgram
from gossamer_formats import Array
from gossamer_ir.interchange.records import Target


def product_operands(
    program: OperatorProgram,
    matrix: Any,
    dense: Array,
    *,
    name: str,
    target: str | Target | None = None,
) -> Operands[MatrixOperand]:
    """Return the checked operands of the product of a sparse matrix and a dense array of the same dtype.

    `name` is that of the dense array in errors. The buffers of the program are matrix, array and result;
    their handles are the same letters in lower case.
    """
    operand = matrix_operand(program, matrix, target=target)
    rows, columns = operand.shape[:2]
    free = (None,) * (program.dense_dimensions - 1)
    array = dense_operand(name, dense, dtype=operand.dtype, shape=(columns, *free))
    _, dense_name, result = (buffer.lower() for buffer in program.buffers)
    sizes = shape_of_array(array)[1:]
    features = sizes[0] if sizes else None
    return Operands(operand, {dense_name: array}, result, (rows, *sizes), operand.dtype, features)
