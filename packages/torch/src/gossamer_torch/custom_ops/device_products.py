"""The two products of sparse matrices on a GPU: the programs of `gossamer.spmm`, `spmv` and `sddmm`."""

from __future__ import annotations

import torch

import gossamer as gs
from gossamer_torch.custom_ops.device_kernels import run_over_pattern
from gossamer_torch.patterns import PatternTensors, kept_pattern
from gossamer_torch.program_dtypes import computed_dtype


def product_on_device(
    values: torch.Tensor,
    dense: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
    columns: int,
    *,
    transposed: bool,
) -> torch.Tensor:
    """Return the product of `sparse_product` on a GPU. Narrow values are converted to float32 before."""
    pattern = kept_pattern(crow, col, columns).orientation(transposed=transposed).tensors
    if pattern.order is not None:
        values = values.index_select(-1, pattern.order)
    wide = computed_dtype(dense)
    values, factors = values.to(wide), dense.to(wide)
    if values.dim() == 1:
        return product_over_pattern(pattern, values, factors).to(dense.dtype)
    products = [product_over_pattern(pattern, *pair) for pair in zip(values, factors, strict=True)]
    if not products:
        return dense.new_empty((0, pattern.shape[0], dense.shape[-1]))
    return torch.stack(products).to(dense.dtype)


def product_over_pattern(
    pattern: PatternTensors, values: torch.Tensor, dense: torch.Tensor
) -> torch.Tensor:
    """Return the product of a matrix with these values, in the order of the pattern, and a dense matrix or
    vector, both in float32 or float64."""
    result = dense.new_empty((pattern.shape[0], *dense.shape[1:]))
    if not result.numel() or not values.numel():
        return result.zero_()
    if dense.dim() == 1:
        arrays = {"a": values, "x": dense, "y": result}
        run_over_pattern(gs.spmv.program.script, pattern, arrays)
    else:
        arrays = {"a": values, "b": dense, "c": result}
        features = {"feat_size": dense.shape[1]}
        run_over_pattern(gs.spmm.program.script, pattern, arrays, features=features)
    return result


def samples_on_device(
    left: torch.Tensor, right: torch.Tensor, crow: torch.Tensor, col: torch.Tensor
) -> torch.Tensor:
    """Return the products of `sampled_product` on a GPU. Narrow values are converted to float32 before."""
    columns = right.shape[0] if right.dim() == 1 else right.shape[-2]
    pattern = kept_pattern(crow, col, columns).direct.tensors
    wide = computed_dtype(left)
    rows = (left.to(wide), right.to(wide))
    if left.dim() == 1:
        return _samples(pattern, *(vector[:, None] for vector in rows)).to(left.dtype)
    if left.dim() == 2:
        return _samples(pattern, *rows).to(left.dtype)
    samples = [_samples(pattern, *pair) for pair in zip(*rows, strict=True)]
    return torch.stack(samples).to(left.dtype) if samples else left.new_empty((0, *col.shape))


def _samples(pattern: PatternTensors, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    result = left.new_empty(pattern.indices.shape)
    if not result.numel() or not left.numel():
        return result.zero_()
    features = {"feat_size": left.shape[1]}
    arrays = {"x": left, "y": right, "out": result}
    run_over_pattern(gs.sddmm.program.script, pattern, arrays, features=features)
    return result
