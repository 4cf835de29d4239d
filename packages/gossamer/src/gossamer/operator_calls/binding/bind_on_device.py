"""Calls of operators with arrays of a device, on which the kernel runs, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer.operator_calls.binding.scaled_products import SCALING
from gossamer.operator_calls.operands.checked_operands import (
    Operands,
    kernel_arguments,
    kernel_spec,
)
from gossamer.operator_calls.operands.dense_operands import (
    NATIVE,
    RESULT_DTYPES,
    number_operand,
    require_shape,
)
from gossamer.operator_calls.operands.device_operands import device_view, require_contiguous
from gossamer.operator_calls.operands.matrix_operand import KernelMatrix
from gossamer.operator_calls.operator_kernels import KernelSpec, kernel_for
from gossamer.operator_calls.operator_program import OperatorProgram, Variant
from gossamer.targets.parse_target import DEFAULT_TARGET, parse_target
from gossamer.targets.resolve_target import resolve_target
from gossamer_backend import BoundCall, Device
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target

if TYPE_CHECKING:
    from gossamer_backend.internal_api import ValidatingBackend


def bind_on_device(
    program: OperatorProgram,
    operands: Operands[KernelMatrix],
    *,
    out: Any,
    device: Device,
    target: str | Target | None,
) -> tuple[BoundCall, Any]:
    """Return the kernel of a program bound to arrays of a device, and the array of the result: `out`, or a
    new one of the backend.

    The kernel is put on the default stream of the device when it is called. Raises `ArgumentError`
    (`operand.device`) for a target whose kernels run elsewhere.
    """
    wanted = parse_target(DEFAULT_TARGET if target is None else target)
    kernel = kernel_for(kernel_spec(operands, program), target=wanted).kernel
    if any(param.space == "host" for param in kernel.signature.buffers):
        raise ArgumentError(
            "operand.device",
            f"The operands are on the device '{device.text}', and kernels for the target '{wanted.text}' run "
            "on the host.",
            hint="Pass a target of a backend for this device: target=...",
        )
    backend = _backend_of(wanted)
    dense = {
        name: _required_copy(backend, array, device=device)
        if isinstance(array, np.ndarray)
        else array
        for name, array in operands.dense.items()
    }
    result = _required_output(
        backend, out, dtype=operands.result_dtype, shape=operands.shape, device=device
    )
    arguments = kernel_arguments(operands._replace(dense=dense), program, result)
    return kernel.bind(**arguments), result


def bind_scaling(
    out: Any, beta: float, *, dtype: str, device: Device, target: str | Target | None
) -> BoundCall:
    """Return the kernel that multiplies an array of a device by a number, bound to both."""
    wanted = parse_target(DEFAULT_TARGET if target is None else target)
    factor = number_operand("beta", beta, NATIVE[dtype])
    copy = _required_copy(_backend_of(wanted), factor, device=device)
    kernel = kernel_for(KernelSpec(SCALING, Variant(dtype)), target=wanted).kernel
    return kernel.bind(y=out, beta=copy)


def _backend_of(target: Target) -> ValidatingBackend:
    return resolve_target(target)[0]


def output_on_device(
    out: Any,
    *,
    dtype: str,
    shape: tuple[int, ...],
    device: Device,
    target: str | Target | None,
) -> Any:
    """Return the array of a device for a result: `out`, or a new one of the backend of a target.

    Raises `ArgumentError` if `out` is not such an array, or if the backend cannot allocate one.
    """
    wanted = parse_target(DEFAULT_TARGET if target is None else target)
    return _required_output(_backend_of(wanted), out, dtype=dtype, shape=shape, device=device)


def _required_output(
    backend: ValidatingBackend,
    out: Any,
    *,
    dtype: str,
    shape: tuple[int, ...],
    device: Device,
) -> Any:
    native = RESULT_DTYPES[dtype]
    if out is None:
        array = backend.new_array(shape, native, device=device)
        return _required_array(backend, array, device=device, hint="Pass out=...")
    view = device_view("out", out)
    assert view is not None, "operands on several devices were refused"
    if view.dtype != native:
        raise ArgumentError(
            "operand.dtype", f"'out' has the dtype {view.dtype}; expected {native}."
        )
    require_shape("out", view, shape=shape)
    require_contiguous("out", view)
    return out


def _required_copy(
    backend: ValidatingBackend, number: np.ndarray[Any, Any], *, device: Device
) -> Any:
    """Return a number that the kernel reads from an array, such as alpha, on the device."""
    copy = backend.to_device(number, device=device)
    return _required_array(
        backend,
        copy,
        device=device,
        hint="Leave out alpha and scale, and beta unless it is 0 or 1.",
    )


def _required_array(
    backend: ValidatingBackend, array: object, *, device: Device, hint: str
) -> object:
    if array is None:
        raise ArgumentError(
            "operand.allocation",
            f"The backend '{backend.name}' cannot make arrays on the device '{device.text}'.",
            hint=hint,
        )
    return array
