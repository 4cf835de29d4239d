"""Calls with a matrix in one format, which one kernel computes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gossamer.operator_calls.fast_path.plans import Plans
from gossamer.operator_calls.operands.checked_operands import (
    Operands,
    kernel_arguments,
    kernel_spec,
)
from gossamer.operator_calls.operands.csr_matrix import CsrMatrix
from gossamer.operator_calls.operands.matrix_operand import KernelMatrix
from gossamer.operator_calls.operator_kernels import kernel_for
from gossamer.operator_calls.operator_program import OperatorProgram
from gossamer.operator_calls.row_ranges import arguments_by_rows
from gossamer_backend import BoundCall, Kernel
from gossamer_formats import Array
from gossamer_ir.interchange.records import Target

if TYPE_CHECKING:
    from gossamer.operator_calls.binding.bound_kernels import BoundKernels


def prepare_kernel(
    program: OperatorProgram,
    operands: Operands[KernelMatrix],
    result: Array,
    *,
    target: str | Target | None,
    plans: Plans | None,
) -> Callable[[], None]:
    """Build the kernel of a program, and return the function that computes a result by it. A plan of the
    kernel is put into `plans`."""
    matrix, dtype = operands.matrix, operands.result_dtype
    if program.sums_rows and isinstance(matrix, CsrMatrix) and matrix.has_long_rows(dtype):
        # No plan: a call of so many elements takes milliseconds, and cuts the rows anew.
        return _prepare_row_segments(program, operands, *matrix.cut_rows(), result, target=target)
    spec = kernel_spec(operands, program)
    kernel = kernel_for(spec, target=target).kernel
    if plans is not None:
        plans.keep(operands, spec, kernel, target=target)
    return partial(_compute, program, operands, kernel, result)


def bind_kernel(
    program: OperatorProgram,
    operands: Operands[KernelMatrix],
    result: Array,
    *,
    target: str | Target | None,
    check: bool,
) -> BoundCall | BoundKernels:
    """Return the kernel of a program bound to arrays; if it takes long, bound to ranges of rows."""
    kernel = kernel_for(kernel_spec(operands, program), target=target).kernel
    arguments = kernel_arguments(operands, program, result)
    verified = operands.matrix.verified
    whole = kernel.bind(verified=verified, check=check, **arguments)
    # The whole is bound first, so that errors are those of a call for all rows.
    ranges = list(arguments_by_rows(kernel.signature, arguments, operands.products))
    if len(ranges) == 1:
        return whole
    # Imported late: few calls take so long.
    from gossamer.operator_calls.binding.bound_kernels import BoundKernels

    calls = [kernel.bind(verified=verified, **range_arguments) for range_arguments in ranges]
    return BoundKernels(calls, whole.arguments)


def _compute(
    program: OperatorProgram, operands: Operands[KernelMatrix], kernel: Kernel, result: Array
) -> None:
    """Run the kernel, in ranges of rows if it takes long: Ctrl-C is noticed between them."""
    arguments = kernel_arguments(operands, program, result)
    for range_arguments in arguments_by_rows(kernel.signature, arguments, operands.products):
        kernel.bind(verified=operands.matrix.verified, **range_arguments)()


def _prepare_row_segments(
    program: OperatorProgram,
    operands: Operands[KernelMatrix],
    matrix: CsrMatrix,
    starts: Array,
    result: Array,
    *,
    target: str | Target | None,
) -> Callable[[], None]:
    """Build the kernel for a matrix that has a row for each segment of a row, and return the function that
    adds the segments of each row. `starts` has the index of the first segment of each row."""
    segments = operands._replace(matrix=matrix, shape=(matrix.shape[0], *operands.shape[1:]))
    kernel = kernel_for(kernel_spec(segments, program), target=target).kernel

    def run() -> None:
        # Zeros, also for a kernel without `init`, which adds to its output.
        sums = np.zeros(segments.shape, result.dtype)
        _compute(program, segments, kernel, sums)
        # In float64, since the sums of segments are what float32 can no longer add exactly.
        exact = np.add.reduceat(sums, starts, axis=0, dtype=np.float64)
        result[...] = result + exact if program.adds else exact

    return run
