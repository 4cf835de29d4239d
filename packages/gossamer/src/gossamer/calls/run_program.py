"""Runs the program of an operator on checked operands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gossamer.calls.kernels import KernelRequest, kernel_for
from gossamer.calls.matrices import CHECKED
from gossamer.calls.operands import output
from gossamer.calls.portions import is_much_work, row_portions
from gossamer.calls.program import OperatorProgram
from gossamer_backend import Kernel
from gossamer_formats import Array
from gossamer_ir.interchange.records import Target

if TYPE_CHECKING:
    from gossamer.calls.plans import Plans


class CheckedOperands(Protocol):
    """The checked operands of one call: `Operands`, or those of a variant for another format."""

    @property
    def dense(self) -> dict[str, Array]:
        """The dense operands by parameter."""

    @property
    def output(self) -> str:
        """The parameter of the result."""

    @property
    def dtype(self) -> str:
        """The dtype of the result."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""

    @property
    def inputs(self) -> tuple[Array, ...]:
        """All arrays that the result must not overlap."""

    @property
    def products(self) -> int:
        """The number of products that a kernel computes."""

    @property
    def is_zero(self) -> bool:
        """True if the result is zero, or empty, as there is nothing to sum."""

    @property
    def plan_key(self) -> object | None:
        """The key of plans that fit the matrix; None if calls with it have no plans."""

    def request(self, program: OperatorProgram, /) -> KernelRequest:
        """Return the request for the kernel of a program."""

    def arguments(self, program: OperatorProgram, result: Array, /) -> dict[str, Array]:
        """Return all arrays of the call by parameter of the kernel."""

    def cut_long_rows(self) -> tuple[CheckedOperands, Array] | None:
        """Return operands whose matrix has a row for each block of a row, and the number of the first block
        of each row; None if every row can be added one by one."""


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
    if is_much_work(operands.products):
        parts = row_portions(kernel.signature, arrays, operands.products)
    for part in parts:
        kernel.bind(verified=CHECKED, **part)()


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
