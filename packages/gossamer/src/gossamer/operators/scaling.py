"""Products that are scaled and added to their output: `out = alpha * (A @ B) + beta * out`.

The factor alpha is part of the kernel, which multiplies each stored value by it. A kernel without `init` adds
to the output, which is multiplied by beta before.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from gossamer.operators.operands import NATIVE, Operands, number_operand, output
from gossamer.operators.operator import Operator
from gossamer.operators.program import OperatorProgram
from gossamer_formats import Array
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target

_INIT = re.compile(r" +with T\.init\(\):\n.*\n")


def is_scaled(alpha: float, beta: float) -> bool:
    """Return whether a product with these factors is more than the product."""
    return not (alpha == 1 and beta == 0)


def scaled_product(
    program: OperatorProgram,
    operands: Callable[[], Operands],
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
    checked = operands()
    factor = number_operand("alpha", alpha, NATIVE[checked.dtype])
    number_operand("beta", beta, NATIVE[checked.dtype])
    checked = checked._replace(dense={**checked.dense, "alpha": factor})
    if beta == 0:
        return _variant(program, adds=False).run(checked, out=out, target=target)
    if out is None:
        raise ArgumentError(
            "operand.out",
            f"beta is {beta}, which requires out.",
            hint="Pass out, or omit beta.",
        )
    result, array = output(out, dtype=checked.dtype, shape=checked.shape, inputs=checked.inputs)
    operator = _variant(program, adds=True)
    if checked.is_zero or array.size == 0:
        array *= beta
        return result
    checked.kernel(operator.program, target)  # any error comes before the first write
    if beta != 1:
        array *= beta
    return operator.run(checked, out=out, target=target)


@cache
def _variant(program: OperatorProgram, *, adds: bool) -> Operator[Any]:
    """Return the operator that multiplies each value by alpha. If it `adds`, it adds to its output."""
    lines = program.script.replace(
        "    indptr: T.handle,", "    alpha: T.handle,\n    indptr: T.handle,"
    )
    lines = lines.replace(
        "    A = T.sp",
        "    One = T.sp.dense_fixed(1)\n"
        '    Alpha = T.sp.match_buffer(alpha, (One,), "float32")\n'
        "    A = T.sp",
    )
    script = lines.replace("A[i, j] *", "A[i, j] * Alpha[0] *")
    name = f"{program.name}_scaled"
    if adds:
        script, name = _INIT.sub("", script), f"{program.name}_added"
    buffers = (*program.buffers, "Alpha")
    made = msgspec.structs.replace(program, name=name, script=script, buffers=buffers, adds=adds)
    return Operator(made, _not_called, operands=_not_called)


def _not_called(*_: Any, **__: Any) -> Any:
    raise AssertionError("variants are run on checked operands")
