"""Runs the program of an operator on checked operands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gossamer.operator_calls.fast_path.plans import Plans
from gossamer.operator_calls.kernels import kernel_for
from gossamer.operator_calls.operands.checked_operands import CheckedOperands
from gossamer.operator_calls.operands.csr_operands import output
from gossamer.operator_calls.operands.matrices import CHECKED
from gossamer.operator_calls.portions import is_much_work, row_portions
from gossamer.operator_calls.program import OperatorProgram
from gossamer_backend import Kernel
from gossamer_formats import Array
from gossamer_ir.interchange.records import Target


def run_program(
    program: OperatorProgram,
    operands: CheckedOperands,
    *,
    out: Array | None,
    target: str | Target | None,
    plans: Plans | None = None,
) -> Array:
    """Return the result for checked operands, in `out` if it is given. A plan of the kernel is put into
    `plans`."""
    result, array = output(out, dtype=operands.dtype, shape=operands.shape, inputs=operands.inputs)
    # Kernels are not called for empty results: an empty array has no address to pass.
    if array.size == 0 or operands.is_zero:
        array[...] = 0
        return result
    cut = operands.cut_long_rows() if program.sums_rows else None
    if cut is not None:
        _add_blocks(program, *cut, array, target=target)
        return result
    request = operands.request(program)
    kernel = kernel_for(request, target=target).kernel
    if plans is not None:
        plans.keep(operands, request, kernel, target=target)
    _compute(program, operands, kernel, array)
    return result


def _compute(
    program: OperatorProgram, operands: CheckedOperands, kernel: Kernel, result: Array
) -> None:
    """Run the kernel, in portions if it takes long: Ctrl-C is noticed between them."""
    arrays = operands.arguments(program, result)
    parts: Iterable[dict[str, Any]] = (arrays,)
    if is_much_work(operands.products) and operands.verified == CHECKED:
        parts = row_portions(kernel.signature, arrays, operands.products)
    for part in parts:
        kernel.bind(verified=operands.verified, **part)()


def _add_blocks(
    program: OperatorProgram,
    blocks: CheckedOperands,
    starts: Array,
    result: Array,
    *,
    target: str | Target | None,
) -> None:
    """Compute the sums of blocks of rows, and add those of each row in float64."""
    sums = np.zeros(blocks.shape, result.dtype)
    _compute(program, blocks, kernel_for(blocks.request(program), target=target).kernel, sums)
    # In float64, since the sums of blocks are what float32 can no longer add exactly.
    exact = np.add.reduceat(sums, starts, axis=0, dtype=np.float64)
    result[...] = result + exact if program.adds else exact
