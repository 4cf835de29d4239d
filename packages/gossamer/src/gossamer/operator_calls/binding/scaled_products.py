"""Products that are scaled and added to their output: `out = alpha * (A @ B) + beta * out`.

The factor alpha is part of the kernel, which multiplies each stored value by it. A kernel without `init` adds
to the output, which is multiplied by beta before: on a device by a kernel of its own.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from gossamer.operator_calls.operands.checked_operands import M, Operands
from gossamer.operator_calls.operands.dense_operands import NATIVE, number_operand
from gossamer.operator_calls.operator_program import FACTOR, OperatorProgram
from gossamer_formats import Array
from gossamer_ir.errors import ArgumentError

SCRIPT = """\
@T.prim_func
def scaling(y: T.handle, beta: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2, "global_symbol": "scaling", "tir.noalias": True})
    I = T.sp.dense_fixed(n)
    One = T.sp.dense_fixed(1)
    Y = T.sp.match_buffer(y, (I,), "float32")
    Beta = T.sp.match_buffer(beta, (One,), "float32")
    with T.sp.iteration([I], "S", "scaling") as [i]:
        Y[i] = Y[i] * Beta[0]
"""

SCALING = OperatorProgram("scaling", SCRIPT, buffers=("Y", "Beta"), values=None)
"""Multiplies all elements of an array by a number."""


def is_scaled(alpha: float, beta: float) -> bool:
    """Return whether these factors change a product."""
    return not (alpha == 1 and beta == 0)


def with_factors(
    program: OperatorProgram, operands: Operands[M], *, alpha: float, beta: float, out: Any
) -> tuple[OperatorProgram, Operands[M]]:
    """Return the program that multiplies by alpha, and adds to its output unless beta is 0, with the operands
    for it. Raises `ArgumentError` unless both are numbers, and (`operand.out`) if beta is not 0 without
    `out`."""
    if operands.dtype not in NATIVE:
        raise ArgumentError(
            "operand.dtype",
            f"alpha is {alpha} and beta {beta} for operands of {operands.dtype}; expected 1 and 0.",
            hint="Multiply the result, whose dtype is that of the sums.",
        )
    dtype = NATIVE[operands.dtype]
    factor = number_operand("alpha", alpha, dtype)
    # Checked only: the output is multiplied by it outside of the kernel.
    number_operand("beta", beta, dtype)
    if beta != 0 and out is None:
        raise ArgumentError(
            "operand.out",
            f"beta is {beta}, which requires out.",
            hint="Pass out, or omit beta.",
        )
    scaled = replace(program, scales=True, adds=beta != 0)
    return scaled, operands._replace(dense={**operands.dense, FACTOR: factor})


def scale_output(array: Array, beta: float) -> None:
    """Multiply an output by beta. If beta is 0, the output is not read, since it may hold NaN."""
    if beta == 0:
        array.fill(0)
    elif beta != 1:
        array *= beta
