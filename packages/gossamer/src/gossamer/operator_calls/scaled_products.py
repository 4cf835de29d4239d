"""Products that are scaled and added to their output: `out = alpha * (A @ B) + beta * out`.

The factor alpha is part of the kernel, which multiplies each stored value by it. A kernel without `init` adds
to the output, which is multiplied by beta before.
"""

from __future__ import annotations

from gossamer.operator_calls.kernels import kernel_for
from gossamer.operator_calls.operands.csr_operands import Operands, number_operand, output
from gossamer.operator_calls.operands.matrices import NATIVE
from gossamer.operator_calls.operands.stored_operands import StoredOperands
from gossamer.operator_calls.program import FACTOR, OperatorProgram, scaled
from gossamer.operator_calls.run_program import run_program
from gossamer_formats import Array
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target


def is_scaled(alpha: float, beta: float) -> bool:
    """Return whether these factors change a product."""
    return not (alpha == 1 and beta == 0)


def scaled_product(
    program: OperatorProgram,
    operands: Operands | StoredOperands,
    *,
    alpha: float,
    beta: float,
    out: Array | None,
    target: str | Target | None,
) -> Array:
    """Return alpha times the product of a program, plus beta times `out`, in `out` if it is given.

    If beta is 0, `out` is only written. `ArgumentError` (`operand.out`) if it is another number without
    `out`, and as for the product.
    """
    factor = number_operand("alpha", alpha, NATIVE[operands.dtype])
    require_output(out, beta=beta, dtype=operands.dtype)
    checked = operands._replace(dense={**operands.dense, FACTOR: factor})
    if beta == 0:
        return run_program(scaled(program, adds=False), checked, out=out, target=target)
    result, array = output(out, dtype=checked.dtype, shape=checked.shape, inputs=checked.inputs)
    if checked.is_zero or array.size == 0:
        array *= beta
        return result
    adding = scaled(program, adds=True)
    kernel_for(checked.request(adding), target=target)  # any error comes before the first write
    if beta != 1:
        array *= beta
    return run_program(adding, checked, out=out, target=target)


def require_output(out: Array | None, *, beta: float, dtype: str) -> None:
    """Raise `ArgumentError` unless beta is a number that is 0 without `out`."""
    number_operand("beta", beta, NATIVE[dtype])
    if beta != 0 and out is None:
        raise ArgumentError(
            "operand.out",
            f"beta is {beta}, which requires out.",
            hint="Pass out, or omit beta.",
        )
