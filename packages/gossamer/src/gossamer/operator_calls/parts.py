"""Calls with a matrix in parts, one kernel after the other.

Parts with rows of their own store the results of these; the others add to what is there. Rows that no storing
part has are set to zero before. Parts that have the same format and the same fixed sizes share a kernel. So
the number of parts is decided at run time, and does not change what is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from gossamer.operator_calls.fast_path.part_plans import keep_plan_of_parts
from gossamer.operator_calls.kernels import KernelRequest, kernel_for
from gossamer.operator_calls.operands.csr_operands import number_operand, output
from gossamer.operator_calls.operands.matrices import NATIVE
from gossamer.operator_calls.program import (
    FACTOR,
    PART,
    OperatorProgram,
    StoredPart,
    Variant,
    scaled,
)
from gossamer.operator_calls.scaled_products import is_scaled, require_output
from gossamer_backend import BoundCall
from gossamer_backend.call.allocation import new_array
from gossamer_formats import Array, Decomposition, Part
from gossamer_ir.analysis.logical_elements import stores_only_elements
from gossamer_ir.errors import FormatError
from gossamer_ir.interchange.records import Target


class PartOperands(NamedTuple):
    """The checked operands of a call: the matrix in parts, the dense arrays by parameter, the parameter of
    the result with its shape, the dtype, and the number of columns of the dense operands."""

    matrix: Decomposition
    dense: dict[str, Array]
    output: str
    shape: tuple[int, ...]
    dtype: str
    features: int | None = None

    @property
    def inputs(self) -> tuple[Array, ...]:
        """All arrays that the result must not overlap."""
        arrays = (part.tensor.arrays.values() for part in self.matrix.parts)
        return (*self.dense.values(), *(array for each in arrays for array in each))


def product_of_parts(
    program: OperatorProgram,
    operands: PartOperands,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    out: Array | None,
    target: str | Target | None,
) -> Array:
    """Return alpha times the product of a program, plus beta times `out`, in `out` if it is given."""
    require_output(out, beta=beta, dtype=operands.dtype)
    storing, adding = program, msgspec.structs.replace(program, adds=True)
    dense = operands.dense
    if is_scaled(alpha, beta):
        storing, adding = scaled(program, adds=False), scaled(program, adds=True)
        dense = {**dense, FACTOR: number_operand("alpha", alpha, NATIVE[operands.dtype])}
    result, array = output(out, dtype=operands.dtype, shape=operands.shape, inputs=operands.inputs)
    if not array.size:
        return result
    coverage = operands.matrix.coverage()
    calls = []
    # All kernels are built before the first write, so that `out` is unchanged after any error.
    for number in (*coverage.initializing, *coverage.adding) if operands.features != 0 else ():
        part = operands.matrix.parts[number]
        stores = beta == 0 and number in coverage.initializing
        calls.append(
            _call(
                storing if stores else adding,
                operands,
                part,
                {**dense, operands.output: array},
                values=part.tensor.storage.values,
                target=target,
            )
        )
    prepare = _zeroing(coverage.left, count=operands.matrix.shape[0])
    if beta == 0:
        prepare(array)
    elif beta != 1:
        array *= beta
    for call in calls:
        call()
    if calls and not is_scaled(alpha, beta):
        keep_plan_of_parts(
            program.name,
            operands.matrix,
            target,
            calls=calls,
            dense=tuple(operands.dense),
            output=operands.output,
            prepare=prepare if coverage.left.size else None,
        )
    return result


def _zeroing(rows: Array, *, count: int) -> Callable[[Array], None]:
    """Return a function that sets some rows of an array to zero; all of them without their numbers."""

    def set_zero(array: Array) -> None:
        if rows.size == count:
            array.fill(0)
        elif rows.size:
            array[rows] = 0

    return set_zero


def sampled_values(
    program: OperatorProgram,
    operands: PartOperands,
    *,
    out: Array | None,
    target: str | Target | None,
) -> Array:
    """Return the values that a program computes for the elements of a matrix, in the order of the values of
    the tensor that was decomposed."""
    result, array = output(out, dtype=operands.dtype, shape=operands.shape, inputs=operands.inputs)
    values = []
    for part in operands.matrix.parts:
        _require_only_elements(program, part)
    for part in operands.matrix.parts:
        own = new_array((part.permutation.size,), NATIVE[operands.dtype])
        if operands.features == 0:
            own[...] = 0
        else:
            call = _call(program, operands, part, operands.dense, values=own, target=target)
            call()
        values.append(own)
    array[...] = operands.matrix.gather_values(values)
    return result


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


def _call(
    program: OperatorProgram,
    operands: PartOperands,
    part: Part,
    arrays: dict[str, Array],
    *,
    values: Array,
    target: str | Target | None,
) -> BoundCall:
    """Return the call of the kernel of a part with dense arrays, and with values in the place of its own."""
    tensor = part.tensor
    stored = StoredPart(tensor.description, tuple(sorted(part.fixed_sizes.items())))
    variant = Variant(operands.dtype, features=operands.features)
    request = KernelRequest(program, variant, part=stored)
    kernel = kernel_for(request, target=target).kernel
    own = {**tensor.arrays, part.values_name: values}
    index_arrays = [f"{handle}_{PART}" for handle in tensor.arrays]
    given: dict[str, Any] = {f"{name}_{PART}": array for name, array in own.items()}
    given |= {f"{name}_{PART}": size for name, size in part.symbolic_sizes.items()}
    given |= arrays
    return kernel.bind(verified=index_arrays, **given)
