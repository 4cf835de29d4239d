"""Maxima and minima of the products of each row, whose gradients are adjoint programs."""

from __future__ import annotations

from functools import cache

import torch

from gossamer_torch.batches import flattened_batch
from gossamer_torch.custom_ops.matrix_of_tensors import MatrixOfTensors, product_with_dense
from gossamer_torch.custom_ops.program_operator import CustomOperator, custom_op

_SCRIPT = """\
@T.prim_func
def extreme_product(
    a: T.handle,
    b: T.handle,
    c: T.handle,
    indptr: T.handle,
    indices: T.handle,
    m: T.int64,
    n: T.int64,
    feat_size: T.int64,
    nnz: T.int64,
) -> None:
    T.func_attr({{"sparse_tir_level": 2, "tir.noalias": True}})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32", sorted=False, unique=False)
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(feat_size)
    A = T.sp.match_buffer(a, (I, J), "float32")
    B = T.sp.match_buffer(b, (J_detach, K), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, J, K], "SRS", "extreme") as [i, j, k]:
        with T.init():
            C[i, k] = T.float32("{initial}")
        C[i, k] = T.{reduce}(C[i, k], A[i, j] * B[j, k])
"""
_INITIAL = {"max": "-inf", "min": "inf"}


@cache
def _program(reduce: str) -> CustomOperator:
    return custom_op(_SCRIPT.format(reduce=reduce, initial=_INITIAL[reduce]))


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]  # torch has no types here
def _operator_name(reduce: str, values: torch.dtype, indices: torch.dtype) -> str:
    """Return the name of torch's operator. It is registered now, since Dynamo does not trace this call."""
    return _program(reduce).operator_for(values, indices).name


def _extremes(matrix: MatrixOfTensors, dense: torch.Tensor, reduce: str) -> torch.Tensor:
    arrays = (matrix.values, dense, matrix.crow, matrix.col)
    if torch.compiler.is_compiling():
        name = _operator_name(reduce, matrix.dtype, matrix.col.dtype)
        operator = getattr(torch.ops.gossamer, name)
        sizes = (matrix.crow.shape[0] - 1, *dense.shape, matrix.nnz)
        compiled: torch.Tensor = operator(*arrays, *sizes)
        return compiled
    extremes: torch.Tensor = _program(reduce)(*arrays)
    return extremes


def extreme_product(matrix: MatrixOfTensors, dense: torch.Tensor, reduce: str) -> torch.Tensor:
    """Return the maximum or minimum of A[i, j] * X[j, k] over the elements of each row, and 0 for a row
    without any."""
    if dense.dim() == 1:
        return extreme_product(matrix, dense[:, None], reduce)[:, 0]
    if matrix.batch or dense.dim() > 2:
        return _multiply_batch(matrix, dense, reduce)
    extremes = _extremes(matrix, dense, reduce)
    return extremes.masked_fill((matrix.crow.diff() == 0)[:, None], 0)


def _multiply_batch(matrix: MatrixOfTensors, dense: torch.Tensor, reduce: str) -> torch.Tensor:
    batch = matrix.batch or tuple(dense.shape[:-2])
    values = flattened_batch(matrix.values.expand(*batch, matrix.nnz), 1)
    factors = flattened_batch(dense.expand(*batch, *dense.shape[-2:]), 2)
    shape = (*batch, matrix.shape[0], dense.shape[-1])
    if not len(values):
        return product_with_dense(matrix.with_values(values), factors).reshape(shape)
    single = [
        extreme_product(matrix.with_values(product_values), factor, reduce)
        for product_values, factor in zip(values, factors, strict=True)
    ]
    return torch.stack(single).reshape(shape)
