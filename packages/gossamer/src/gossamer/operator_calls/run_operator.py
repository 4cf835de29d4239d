"""Runs the program of an operator on checked operands."""

from __future__ import annotations

from collections.abc import Callable

from gossamer.operator_calls.binding.bind_kernel import prepare_kernel
from gossamer.operator_calls.binding.scaled_products import is_scaled, scale_output, with_factors
from gossamer.operator_calls.fast_path.plans import Plans
from gossamer.operator_calls.operands.checked_operands import Operands, has_one_kernel, is_in_parts
from gossamer.operator_calls.operands.dense_operands import output_array
from gossamer.operator_calls.operands.matrix_operand import MatrixOperand
from gossamer.operator_calls.operator_program import OperatorProgram
from gossamer_backend import HOST, Device
from gossamer_formats import Array
from gossamer_ir.interchange.records import Target


def run_operator(
    program: OperatorProgram,
    operands: Operands[MatrixOperand],
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    out: Array | None,
    target: str | Target | None,
    plans: Plans,
) -> Array:
    """Return alpha times the result of a program, plus beta times `out`, in `out` if it is given.

    If beta is 0, `out` is only written. Without factors, a plan of the call is put into `plans`. Raises
    `ArgumentError` for a wrong factor or output; nothing was written then.
    """
    scales = is_scaled(alpha, beta)
    if scales:
        program, operands = with_factors(program, operands, alpha=alpha, beta=beta, out=out)
    device = operands.device(out)
    if device != HOST:
        return _run_on_device(program, operands, beta=beta, out=out, device=device, target=target)
    # After the factors, whose errors name `alpha` and `beta`.
    result, array = output_array(
        out, dtype=operands.result_dtype, shape=operands.shape, inputs=operands.inputs
    )
    # Kernels are not called for empty results: an empty array has no address to pass.
    if array.size == 0 or operands.products == 0:
        scale_output(array, beta)
        return result
    kept = None if scales else plans
    # All kernels are built before the first write, so that `out` is unchanged after any error.
    run = _prepare(program, operands, array, target=target, plans=kept)
    if program.adds:
        scale_output(array, beta)
    run()
    return result


def _run_on_device(
    program: OperatorProgram,
    operands: Operands[MatrixOperand],
    *,
    beta: float,
    out: Array | None,
    device: Device,
    target: str | Target | None,
) -> Array:
    # Imported late: most arrays are on the host.
    from gossamer.operator_calls.binding.bind_on_device import bind_on_device, bind_scaling

    assert has_one_kernel(operands), "the parts of a decomposition are on the host"
    call, on_device = bind_on_device(program, operands, out=out, device=device, target=target)
    if beta not in (0, 1):
        bind_scaling(on_device, beta, dtype=operands.dtype, device=device, target=target)()
    call()
    result: Array = on_device
    return result


def _prepare(
    program: OperatorProgram,
    operands: Operands[MatrixOperand],
    result: Array,
    *,
    target: str | Target | None,
    plans: Plans | None,
) -> Callable[[], None]:
    """Build all kernels, and return the function that computes a result by them."""
    if is_in_parts(operands):
        # Imported late: most matrices have one format.
        from gossamer.operator_calls.binding.bind_parts import bind_parts

        return bind_parts(program, operands, result, target=target, plans=plans)
    assert has_one_kernel(operands)
    return prepare_kernel(program, operands, result, target=target, plans=plans)
