"""Checks of operands, with one sentence for each wrong shape, dtype, layout or device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd.forward_ad import unpack_dual

from gossamer_formats.internal_api import VALUE_DTYPES
from gossamer_ir.errors import ArgumentError
from gossamer_support.message_texts import either
from gossamer_torch.devices import DEVICE_TYPES, required_target

INDEX_TENSOR_DTYPES = (torch.int32, torch.int64)
TENSOR_DTYPES: tuple[torch.dtype, ...] = tuple(
    dtype for name in VALUE_DTYPES if (dtype := getattr(torch, name)).is_floating_point
)
"""The dtypes of values, which have gradients: those of gossamer's tensors but for integers."""


def require_dense(
    name: str, tensor: Any, *, dtypes: tuple[torch.dtype, ...] = TENSOR_DTYPES
) -> None:
    """Raise `ArgumentError` unless an operand is a strided tensor of one of these dtypes, on the CPU or on a
    GPU for which a backend is installed."""
    if not isinstance(tensor, torch.Tensor):
        raise ArgumentError(
            "operand.kind",
            f"'{name}' has the type '{type(tensor).__name__}'; expected a tensor of torch.",
        )
    if not torch.compiler.is_compiling() and _has_tangent(tensor):
        # torch would ignore the tangent without a word.
        raise forward_mode_error(f"'{name}'")
    if tensor.is_nested:
        raise ArgumentError(
            "operand.kind",
            f"'{name}' is a nested tensor; expected a dense tensor.",
            hint=f"Convert it with {name}.to_padded_tensor(0).",
        )
    if tensor.layout != torch.strided:
        raise ArgumentError(
            "operand.kind",
            f"'{name}' has the layout {tensor.layout}; expected a dense tensor.",
            hint=f"Convert it with {name}.to_dense().",
        )
    require_device(name, tensor)
    if tensor.dtype not in dtypes:
        expected = either(str(dtype) for dtype in dtypes)
        raise ArgumentError(
            "operand.dtype",
            f"'{name}' has the dtype {tensor.dtype}; expected {expected}.",
            hint=f"Convert it with {name}.to({dtypes[0]}).",
        )


def require_device(name: str, tensor: torch.Tensor) -> None:
    """Raise `ArgumentError` (`operand.device`) for a tensor on a device that no kernel runs on."""
    kind = tensor.device.type
    if kind == "cpu":
        return
    if kind not in DEVICE_TYPES:
        raise ArgumentError(
            "operand.device",
            f"'{name}' is on the device '{tensor.device}'; expected {either(DEVICE_TYPES)}.",
            hint=f"Copy it with {name}.cpu().",
        )
    if not torch.compiler.is_compiling():
        required_target(name, tensor)


def require_cpu(name: str, tensor: torch.Tensor) -> None:
    """Raise `ArgumentError` (`operand.device`) for a tensor on another device than the CPU."""
    if tensor.device.type != "cpu":
        raise ArgumentError(
            "operand.device",
            f"'{name}' is on the device '{tensor.device}'; expected 'cpu'.",
            hint=f"Copy it with {name}.cpu().",
        )


def require_one_device(name: str, tensor: torch.Tensor, device: torch.device, *, like: str) -> None:
    """Raise `ArgumentError` (`operand.device`) for a tensor on another device than another operand."""
    if tensor.device != device:
        raise ArgumentError(
            "operand.device",
            f"'{name}' is on the device '{tensor.device}', {like} on '{device}'; expected one device.",
            hint=f"Copy {name} with {name}.to('{device}').",
        )


def require_matrix_shape(shape: Any) -> None:
    """Raise `ArgumentError` unless a shape has two numbers, of rows and of columns. Those of compiled graphs
    may be symbols."""
    is_pair = isinstance(shape, Sequence) and len(shape) == 2
    if not is_pair or not all(isinstance(size, int | torch.SymInt) and size >= 0 for size in shape):
        raise ArgumentError(
            "operand.shape", f"'shape' is {shape}; expected the numbers of rows and of columns."
        )


def forward_mode_error(name: str) -> ArgumentError:
    """Return the error for an operand or an operator with a gradient of forward mode."""
    return ArgumentError(
        "operand.kind",
        f"{name} has a gradient of forward mode; operators have those of reverse mode only.",
        hint="Use backward(), torch.autograd.grad, torch.func.grad or jacrev.",
    )


def _has_tangent(tensor: torch.Tensor) -> bool:
    unpacked = unpack_dual(tensor)  # type: ignore[no-untyped-call]  # torch has no types here
    return unpacked.tangent is not None


def require_index_tensors(crow: torch.Tensor, col: torch.Tensor, rows: int) -> None:
    """Raise `ArgumentError` unless the offsets and the columns of a matrix in CSR have the right kinds."""
    for name, tensor in (("crow", crow), ("col", col)):
        require_dense(name, tensor, dtypes=INDEX_TENSOR_DTYPES)
    require_one_device("col", col, crow.device, like="'crow'")
    require_tensor_shape("crow", crow, (rows + 1,))
    require_tensor_shape("col", col, (None,))


def require_value_tensor(values: torch.Tensor, col: torch.Tensor) -> None:
    """Raise `ArgumentError` unless the last dimension has one value for each element of a matrix."""
    require_dense("values", values)
    require_one_device("values", values, col.device, like="'col'")
    require_tensor_shape("values", values, (*(None,) * max(values.dim() - 1, 0), col.shape[0]))


def require_tensor_shape(name: str, tensor: torch.Tensor, shape: tuple[int | None, ...]) -> None:
    """Raise `ArgumentError` for a tensor of another shape (None: any length)."""
    pairs = zip(tensor.shape, shape, strict=False)
    if tensor.dim() == len(shape) and all(
        wanted is None or size == wanted for size, wanted in pairs
    ):
        return
    expected = ", ".join("any" if wanted is None else str(wanted) for wanted in shape)
    comma = "," if len(shape) == 1 else ""
    raise ArgumentError(
        "operand.shape",
        f"'{name}' has the shape {tuple(tensor.shape)}; expected ({expected}{comma}).",
    )


def require_one_dtype(name: str, tensor: torch.Tensor, dtype: torch.dtype, *, like: str) -> None:
    """Raise `ArgumentError` for a tensor of another dtype than that of another operand."""
    if tensor.dtype != dtype:
        raise ArgumentError(
            "operand.dtype",
            f"'{name}' has the dtype {tensor.dtype}, {like} {dtype}; expected one dtype.",
            hint=f"Convert {name} with {name}.to({dtype}).",
        )


def require_indices(name: str, indices: torch.Tensor, size: int) -> None:
    """Raise `ArgumentError` unless indices are from 0 to `size` - 1."""
    if not indices.numel():
        return
    least, most = (int(value) for value in torch.aminmax(indices))
    if least < 0 or most >= size:
        raise ArgumentError(
            "operand.range",
            f"'{name}' contains {least if least < 0 else most}; expected values from 0 to {size - 1}.",
        )
