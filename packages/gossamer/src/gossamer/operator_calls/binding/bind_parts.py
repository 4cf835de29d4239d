"""Calls with a matrix in parts, one kernel after the other; on a GPU `bind_parts_at_once`.

Parts with rows of their own store the results of these; the others add to what is there. Rows that no storing
part has are set to zero before; if these are all rows, the kernel of the first part does so, on all threads.
Parts that have the same format and the same fixed sizes share a kernel. So the number of parts is decided at
run time, and does not change what is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from gossamer.operator_calls.binding.bind_parts_at_once import (
    bind_parts_at_once,
    is_computed_at_once,
)
from gossamer.operator_calls.binding.bound_kernels import BoundKernels
from gossamer.operator_calls.fast_path.plans import Plans
from gossamer.operator_calls.operands.checked_operands import Operands
from gossamer.operator_calls.operands.dense_operands import RESULT_DTYPES
from gossamer.operator_calls.operands.matrix_in_parts import MatrixInParts, stored_part
from gossamer.operator_calls.operands.stored_matrix import StoredMatrix
from gossamer.operator_calls.operator_kernels import kernel_for
from gossamer.operator_calls.operator_program import OperatorProgram
from gossamer_backend import BoundCall
from gossamer_backend.internal_api import new_array
from gossamer_formats import Array, Part
from gossamer_ir.analysis.axes.logical_elements import stores_only_elements
from gossamer_ir.errors import FormatError
from gossamer_ir.interchange.records import Target


def bind_parts(
    program: OperatorProgram,
    operands: Operands[MatrixInParts],
    result: Array,
    *,
    target: str | Target | None,
    plans: Plans | None = None,
    check: bool = False,
) -> BoundKernels:
    """Return the kernels of all parts bound to arrays: they compute sums over rows, or a value for each
    element. A plan of sums is put into `plans`. With `check`, index arrays are checked again."""
    if not program.sums_rows:
        return _bind_values(program, operands, result, target=target, check=check)
    if target is not None and is_computed_at_once(program, operands, target):
        call = bind_parts_at_once(program, operands, result, target=target, check=check)
        return BoundKernels([call], {**operands.dense, operands.output: result})
    calls, set_left = _bind_sums(program, operands, result, target=target, check=check)
    if calls and plans is not None:
        plans.keep_joint(operands, calls, target=target, prepare=set_left)
    before = None if set_left is None else partial(set_left, result)
    return BoundKernels(calls, {**operands.dense, operands.output: result}, before=before)


def _bind_sums(
    program: OperatorProgram,
    operands: Operands[MatrixInParts],
    result: Array,
    *,
    target: str | Target | None,
    check: bool,
) -> tuple[list[BoundCall], Callable[[Array], None] | None]:
    """Return the calls of the parts, and the function that sets the other rows of a result to zero; None if
    there are none."""
    decomposition = operands.matrix.decomposition
    # Parts that store come first: the others add to what these have written.
    initializing, adding, left = decomposition.coverage()
    adds = replace(program, adds=True)
    programs = [*(program for _ in initializing), *(adds for _ in adding)]
    if programs and left.size == decomposition.shape[0] and not program.adds:
        # `fill` runs on one thread: it took a tenth of a product with tiles on two threads.
        programs[0], left = replace(program, separates_init=True), left[:0]
    dense = {**operands.dense, operands.output: result}
    calls = []
    for number, part_program in zip((*initializing, *adding), programs, strict=True):
        part = stored_part(decomposition.parts[number])
        calls.append(_bind(part_program, operands, part, dense, target=target, check=check))
    if not left.size or program.adds:
        return calls, None
    return calls, partial(_set_zero, rows=left)


def _set_zero(array: Array, *, rows: Array) -> None:
    array[rows] = 0


def _bind_values(
    program: OperatorProgram,
    operands: Operands[MatrixInParts],
    result: Array,
    *,
    target: str | Target | None,
    check: bool,
) -> BoundKernels:
    """Bind the kernels of the values that a program computes for the elements of a matrix, in the order of
    the values of the tensor that was decomposed."""
    decomposition = operands.matrix.decomposition
    for part in decomposition.parts:
        _require_only_elements(program, part)
    # One array for each part, since their kernels write in the order of their slots.
    dtype = RESULT_DTYPES[operands.result_dtype]
    values = [new_array((part.permutation.size,), dtype) for part in decomposition.parts]
    calls = [
        _bind(
            program,
            operands,
            stored_part(part, part_values),
            operands.dense,
            target=target,
            check=check,
        )
        for part, part_values in zip(decomposition.parts, values, strict=True)
    ]

    def collect() -> None:
        result[...] = decomposition.gather_values(values)

    return BoundKernels(calls, {**operands.dense, operands.output: result}, after=collect)


def _require_only_elements(program: OperatorProgram, part: Part) -> None:
    """Raise if a part has slots without an element for which values would be computed as well."""
    tensor = part.tensor
    if not stores_only_elements(tensor.description):
        raise FormatError(
            "format.program",
            f"'{program.name}' cannot compute the part '{part.name}': its format '{tensor.format}' fills "
            "dense axes with zeros.",
            hint="Choose a format that stores elements one by one, such as 'csr'.",
        )


def _bind(
    program: OperatorProgram,
    operands: Operands[MatrixInParts],
    matrix: StoredMatrix,
    dense: dict[str, Array],
    *,
    target: str | Target | None,
    check: bool,
) -> BoundCall:
    """Return the call of the kernel of a part with dense arrays."""
    spec = matrix.kernel_spec(program, dtype=operands.dtype, features=operands.features)
    kernel = kernel_for(spec, target=target).kernel
    return kernel.bind(verified=matrix.verified, check=check, **matrix.arguments(program, dense))
