"""The softmax of each row and its gradient, as custom operators of torch.

The gradient is a program of its own instead of the adjoint one, which would compute the softmax again.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

import gossamer as gs
from gossamer_backend import Kernel
from gossamer_ir.transform.retype_module import retype_module
from gossamer_torch.batches import flattened_batch
from gossamer_torch.custom_ops.device_kernels import run_over_pattern
from gossamer_torch.custom_ops.products import sampled_product, sparse_product
from gossamer_torch.custom_ops.registration import GradientsByName, new_like, torch_operator
from gossamer_torch.numpy_views import dtype_name_of, shared_array
from gossamer_torch.patterns import kept_pattern

_HEAD = """\
@T.prim_func
def {name}(
    {arrays}: T.handle,
    indptr: T.handle,
    indices: T.handle,
    m: T.int64,
    n: T.int64,
    nnz: T.int64,
) -> None:
    T.func_attr({{"sparse_tir_level": 2, "tir.noalias": True}})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32", sorted=False, unique=False)
"""
SOFTMAX = (
    _HEAD.format(name="row_softmax", arrays="a: T.handle, p")
    + """\
    A = T.sp.match_buffer(a, (I, J), "float32")
    P = T.sp.match_buffer(p, (I, J), "float32")
    Most = T.sp.alloc_buffer((I,), "float32")
    Total = T.sp.alloc_buffer((I,), "float32")
    with T.sp.iteration([I, J], "SR", "most") as [i, j]:
        with T.init():
            Most[i] = T.float32("-inf")
        Most[i] = T.max(Most[i], A[i, j])
    with T.sp.iteration([I, J], "SS", "powers") as [i, j_power]:
        P[i, j_power] = T.exp(A[i, j_power] - Most[i])
    with T.sp.iteration([I, J], "SR", "total") as [i, j_total]:
        with T.init():
            Total[i] = 0.0
        Total[i] = Total[i] + P[i, j_total]
    with T.sp.iteration([I, J], "SS", "quotients") as [i, j_quotient]:
        P[i, j_quotient] = P[i, j_quotient] / Total[i]
"""
)
_GRADIENT = (
    _HEAD.format(name="row_softmax_gradient", arrays="p: T.handle, g: T.handle, a_grad")
    + """\
    P = T.sp.match_buffer(p, (I, J), "float32")
    G = T.sp.match_buffer(g, (I, J), "float32")
    A_grad = T.sp.match_buffer(a_grad, (I, J), "float32")
    Mean = T.sp.alloc_buffer((I,), "float32")
    with T.sp.iteration([I, J], "SR", "mean") as [i, j]:
        with T.init():
            Mean[i] = 0.0
        Mean[i] = Mean[i] + P[i, j] * G[i, j]
    with T.sp.iteration([I, J], "SS", "gradient") as [i, j_gradient]:
        A_grad[i, j_gradient] = P[i, j_gradient] * (G[i, j_gradient] - Mean[i])
"""
)


@cache
def _kernel(script: str, dtype: str, index_dtype: str) -> Kernel:
    module = gs.schedule(script).module
    return gs.compile(retype_module(module, dtype=dtype, index_dtype=index_dtype))


def _call_for_each_matrix(
    script: str,
    arrays: dict[str, torch.Tensor],
    crow: torch.Tensor,
    col: torch.Tensor,
    columns: int,
) -> torch.Tensor:
    """Return the result of a kernel for each matrix of a batch."""
    structure = kept_pattern(crow, col, columns).direct.structure
    indices = {name: structure.arrays[name] for name in ("indptr", "indices")}
    first, *_ = arrays.values()
    result = first.new_empty(first.shape)
    kernel = _kernel(script, dtype_name_of(first), str(indices["indices"].dtype))
    output = kernel.signature.buffers
    (written,) = (param.name for param in output if param.is_written)
    batch = {**arrays, written: result}
    flat = [flattened_batch(tensor, 1) for tensor in batch.values()]
    if col.shape[0]:
        for rows in zip(*flat, strict=True):
            passed: dict[str, Any] = dict(zip(batch, map(shared_array, rows), strict=True))
            passed |= {**indices, "n": columns}
            # `kept_pattern` has checked the indices, for all matrices of the batch and for later calls.
            kernel.bind(verified=tuple(indices), **passed)()
    return result


def _call_on_device(
    script: str,
    arrays: dict[str, torch.Tensor],
    crow: torch.Tensor,
    col: torch.Tensor,
    columns: int,
    *,
    result: str,
) -> torch.Tensor:
    """Return the array `result` of a program for each matrix of a batch on a GPU."""
    pattern = kept_pattern(crow, col, columns).direct.tensors
    first, *_ = arrays.values()
    flat = [flattened_batch(tensor, 1) for tensor in arrays.values()]
    results = []
    for rows in zip(*flat, strict=True):
        results.append(first.new_empty(col.shape))
        if col.shape[0]:
            passed = dict(zip(arrays, rows, strict=True)) | {result: results[-1]}
            run_over_pattern(script, pattern, passed)
    return torch.stack(results).reshape(first.shape) if results else first.new_empty(first.shape)


def _softmax_on_device(
    values: torch.Tensor, crow: torch.Tensor, col: torch.Tensor, columns: int
) -> torch.Tensor:
    return _call_on_device(SOFTMAX, {"a": values}, crow, col, columns, result="p")


def _gradient_on_device(
    weights: torch.Tensor,
    gradient: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
    columns: int,
) -> torch.Tensor:
    arrays = {"p": weights, "g": gradient}
    return _call_on_device(_GRADIENT, arrays, crow, col, columns, result="a_grad")


def _softmax_gradients(
    gradient: torch.Tensor,
    needed: frozenset[str],
    result: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
    columns: int,
) -> GradientsByName:
    return {"values": row_softmax_gradient(result, gradient, crow, col, columns)}


@torch_operator(
    "row_softmax",
    new_result=new_like("values"),
    gradients=_softmax_gradients,
    device_kernel=_softmax_on_device,
)
def row_softmax(
    values: torch.Tensor, crow: torch.Tensor, col: torch.Tensor, columns: int
) -> torch.Tensor:
    """Return the softmax over the elements of each row."""
    return _call_for_each_matrix(SOFTMAX, {"a": values}, crow, col, columns)


def _gradients_of_gradient(
    second: torch.Tensor,
    needed: frozenset[str],
    weights: torch.Tensor,
    gradient: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
    columns: int,
) -> GradientsByName:
    """Return the gradients of P * (G - sum(P * G)), with sums over rows."""

    def row_sums(values: torch.Tensor) -> torch.Tensor:
        """Return for each element the sum of its row."""
        flat = flattened_batch(values, 1)
        ones = flat.new_ones((flat.shape[0], columns, 1))
        sums = sparse_product(flat, ones, crow, col, columns, transposed=False)
        return sampled_product(sums, ones, crow, col).reshape(values.shape)

    gradients = {}
    if "weights" in needed:
        factor_term = second * (gradient - row_sums(weights * gradient))
        gradients["weights"] = factor_term - gradient * row_sums(weights * second)
    if "gradient" in needed:
        gradients["gradient"] = row_softmax_gradient(weights, second, crow, col, columns)
    return gradients


@torch_operator(
    "row_softmax_gradient",
    new_result=new_like("weights"),
    gradients=_gradients_of_gradient,
    device_kernel=_gradient_on_device,
)
def row_softmax_gradient(
    weights: torch.Tensor,
    gradient: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
    columns: int,
) -> torch.Tensor:
    """Return the gradient of scores from the weights that are their softmax, and the gradient of these."""
    return _call_for_each_matrix(
        _GRADIENT, {"p": weights, "g": gradient.contiguous()}, crow, col, columns
    )
