"""The two products of sparse matrices as custom operators of torch, each in the gradient of the other.

The gradient of a matrix stays on its pattern: it is a sampled product (SDDMM). The gradient of a dense
operand is a product with the transposed matrix, whose pattern is made once: rows are computed in parallel,
and nothing is scattered. `gossamer.adjoint` of the programs gives the same gradients; the tests compare both.
"""

from __future__ import annotations

import torch

import gossamer as gs
from gossamer_torch.custom_ops.device_products import product_on_device, samples_on_device
from gossamer_torch.custom_ops.registration import GradientsByName, torch_operator
from gossamer_torch.numpy_views import dtype_name_of, shared_array, tensor_of
from gossamer_torch.patterns import kept_pattern


def _new_product(
    values: torch.Tensor, dense: torch.Tensor, crow: torch.Tensor, columns: int, *, transposed: bool
) -> torch.Tensor:
    rows = columns if transposed else crow.shape[0] - 1
    if values.dim() == 1:
        return dense.new_empty((rows, *dense.shape[1:]))
    return dense.new_empty((dense.shape[0], rows, dense.shape[2]))


def _product_gradients(
    gradient: torch.Tensor,
    needed: frozenset[str],
    values: torch.Tensor,
    dense: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
    columns: int,
    transposed: bool,  # noqa: FBT001 (passed by name)
) -> GradientsByName:
    """Return the gradients: that of the values is sampled at the pattern, that of the dense operand is a
    product with the transposed matrix."""
    # Both read it by rows; of a layer it often is a transposed matrix, whose copy takes as long as a tenth of
    # a product.
    gradient = gradient.contiguous()
    gradients = {}
    if "values" in needed:
        left, right = (dense, gradient) if transposed else (gradient, dense)
        gradients["values"] = sampled_product(left, right, crow, col)
    if "dense" in needed:
        gradients["dense"] = sparse_product(
            values, gradient, crow, col, columns, transposed=not transposed
        )
    return gradients


@torch_operator(
    "spmm",
    new_result=_new_product,
    gradients=_product_gradients,
    device_kernel=product_on_device,
)
def sparse_product(
    values: torch.Tensor,
    dense: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
    columns: int,
    *,
    transposed: bool,
) -> torch.Tensor:
    """Return the product of a matrix in CSR, or of its transposed matrix, with a dense matrix or vector; of
    each matrix of a batch if `values` has two dimensions."""
    pattern = kept_pattern(crow, col, columns)
    if values.dim() == 1:
        matrix = pattern.operand(values, transposed=transposed)
        return tensor_of(gs.spmm(matrix, shared_array(dense)), dense.dtype)
    orientation = pattern.orientation(transposed=transposed)
    products = dense.new_empty((len(dense), orientation.rows, dense.shape[-1]))
    for product, matrix_values, dense_matrix in zip(products, values, dense, strict=True):
        matrix = orientation.new_matrix(matrix_values)
        product.copy_(torch.from_numpy(gs.spmm(matrix, shared_array(dense_matrix))))
    return products


def _new_samples(left: torch.Tensor, col: torch.Tensor) -> torch.Tensor:
    return left.new_empty((*left.shape[:-2], *col.shape))


def _sample_gradients(
    gradient: torch.Tensor,
    needed: frozenset[str],
    left: torch.Tensor,
    right: torch.Tensor,
    crow: torch.Tensor,
    col: torch.Tensor,
) -> GradientsByName:
    columns = right.shape[0] if right.dim() == 1 else right.shape[-2]
    gradients = {}
    if "left" in needed:
        gradients["left"] = sparse_product(gradient, right, crow, col, columns, transposed=False)
    if "right" in needed:
        gradients["right"] = sparse_product(gradient, left, crow, col, columns, transposed=True)
    return gradients


@torch_operator(
    "sddmm",
    new_result=_new_samples,
    gradients=_sample_gradients,
    device_kernel=samples_on_device,
)
def sampled_product(
    left: torch.Tensor, right: torch.Tensor, crow: torch.Tensor, col: torch.Tensor
) -> torch.Tensor:
    """Return for each element of a pattern the inner product of its row of `left` with its column's row of
    `right`; rows of vectors are numbers, and operands of three dimensions are batches."""
    pattern = kept_pattern(crow, col, right.shape[-2] if right.dim() > 1 else right.shape[0])
    matrix = pattern.mask(dtype_name_of(left))

    def samples(*rows: torch.Tensor) -> torch.Tensor:
        return tensor_of(gs.sddmm(matrix, *map(shared_array, rows)), left.dtype)

    if left.dim() == 1:
        return samples(left[:, None], right[:, None])
    if left.dim() == 2:
        return samples(left, right)
    batch = [samples(*rows) for rows in zip(left, right, strict=True)]
    return torch.stack(batch) if batch else left.new_empty((0, col.shape[0]))
