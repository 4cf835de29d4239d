"""The products of a layer of graphs, of which both orders give the same result, and sums with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
from torch.nn.functional import linear

from gossamer_torch.checks import require_one_device, require_one_dtype
from gossamer_torch.custom_ops.affine_sums import (
    affine_sum,
    graph_convolution,
    rectified_affine_sum,
    rectified_graph_convolution,
)
from gossamer_torch.custom_ops.row_reductions import ReduceName
from gossamer_torch.func_transforms import has_func_transforms, has_hooks
from gossamer_torch.operators.spmm import spmm
from gossamer_torch.sparse_matrix import SparseMatrix

Activation: TypeAlias = Callable[[torch.Tensor], torch.Tensor]
"""A function of the features that a layer returns, such as `torch.relu`."""


class Terms(NamedTuple):
    """The parameters of a layer, and what the root weight multiplies: the features `target`, or those of all
    nodes if it is None."""

    weight: torch.Tensor
    bias: torch.Tensor | None = None
    root_weight: torch.Tensor | None = None
    target: torch.Tensor | None = None


def is_relu(activation: Activation | None) -> bool:
    """Return whether an activation is relu, which is computed with the sums of a layer.

    >>> is_relu(torch.relu), is_relu(torch.nn.ReLU()), is_relu(torch.tanh), is_relu(None)
    (True, True, False, False)
    """
    functions = (torch.relu, torch.nn.functional.relu)
    # A class derived from it, or a hook, may compute something else.
    is_module = type(activation) is torch.nn.ReLU and not has_hooks(activation)
    return is_module or activation in functions


def weight_of(linear: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """Return the weight of a module that would be applied to `x`. If it has hooks, they run first, by a call
    with no rows: those of pruning and of weight normalization set the weight.

    >>> weight_of(torch.nn.Linear(3, 2), torch.ones(5, 3)).shape
    torch.Size([2, 3])
    """
    if has_hooks(linear):
        linear(x[:0])
    return linear.weight


def propagate(
    matrix: SparseMatrix,
    x: torch.Tensor,
    terms: Terms,
    *,
    reduction: ReduceName = "sum",
    activation: Activation | None = None,
) -> torch.Tensor:
    """Return the activation of `A @ x @ weight.T + target @ root_weight.T + bias`, without the terms that are
    None. `reduction` is that of each row of A.

    >>> matrix = SparseMatrix(torch.tensor([0, 2, 2]), torch.tensor([0, 1]), shape=(2, 2))
    >>> terms = Terms(torch.tensor([[-1.0]]), torch.ones(1))
    >>> propagate(matrix, torch.tensor([[1.0], [2.0]]), terms, activation=torch.relu)
    tensor([[0.],
            [1.]])
    """
    is_first = reduction != "sum" or receives_first(x, terms.weight.shape[0])
    if matrix.batch or torch.is_autocast_enabled(x.device.type):
        output = _composed_sum(matrix, x, terms, reduction=reduction, is_first=is_first)
        return output if activation is None else activation(output)
    for name, parameter in zip(terms._fields, terms, strict=True):
        if parameter is not None:
            require_one_dtype(name, parameter, x.dtype, like="x")
    rectifies = is_relu(activation)
    if is_first:
        output = _sum_of_received(spmm(matrix, x, reduction), x, terms, rectifies=rectifies)
    else:
        output = _convolution(matrix, x, terms, rectifies=rectifies)
    return output if activation is None or rectifies else activation(output)


def receives_first(x: torch.Tensor, out_channels: int) -> bool:
    """Return whether (A X) W takes less time than A (X W). The product with the sparse matrix takes the time:
    a training step multiplies features of the gradient, too, unless X is constant and comes first.

    >>> receives_first(torch.ones(3, 8), 4), receives_first(torch.ones(3, 8, requires_grad=True), 4)
    (True, False)
    """
    needs_gradient = torch.is_grad_enabled() and not x.requires_grad
    return x.shape[1] <= (2 * out_channels if needs_gradient else out_channels)


def _sum_of_received(
    received: torch.Tensor, x: torch.Tensor, terms: Terms, *, rectifies: bool
) -> torch.Tensor:
    """Return the sum of the terms of a layer after its product with the matrix."""
    add = rectified_affine_sum if rectifies else affine_sum
    target = x if terms.target is None else terms.target
    other = None if terms.root_weight is None else target
    return add(received, terms.weight, other, terms.root_weight, terms.bias)


def _convolution(
    matrix: SparseMatrix, x: torch.Tensor, terms: Terms, *, rectifies: bool
) -> torch.Tensor:
    """Return the sum of the terms of a layer, whose weights come before the product with the matrix."""
    require_one_dtype("x", x, matrix.dtype, like="the matrix")
    require_one_device("x", x, matrix.values.device, like="the matrix")
    convolve = rectified_graph_convolution if rectifies else graph_convolution
    return convolve(
        matrix.values,
        x,
        terms.weight,
        terms.target,
        terms.root_weight,
        terms.bias,
        matrix.crow,
        matrix.col,
        matrix.shape[1],
    )


def _composed_sum(
    matrix: SparseMatrix,
    x: torch.Tensor,
    terms: Terms,
    *,
    reduction: ReduceName,
    is_first: bool,
) -> torch.Tensor:
    """Return the sum of the terms of a layer by operators of torch, which autocast narrows, and by products
    with the matrix in its dtype."""
    if is_first:
        output = linear(spmm(matrix, x, reduction), terms.weight, terms.bias)
    else:
        output = spmm(matrix, linear(x, terms.weight).to(matrix.dtype))
        if terms.bias is not None:
            output = add_to_product(output, terms.bias)
    if terms.root_weight is None:
        return output
    return output + linear(x if terms.target is None else terms.target, terms.root_weight)


def product_with_bias(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    """Return `x @ weight + bias`, without a bias that is None.

    >>> product_with_bias(torch.ones(1, 2), torch.ones(2, 1), torch.ones(1))
    tensor([[3.]])
    """
    return x @ weight if bias is None else torch.addmm(bias, x, weight)


def add_to_product(product: torch.Tensor, term: torch.Tensor) -> torch.Tensor:
    """Return the sum of a product without other references and a term, which is added in place: a new array
    takes as long as to read the weights.

    >>> product = torch.ones(2, 2)
    >>> add_to_product(product, torch.tensor([1.0, 2.0])) is product
    True
    """
    # Not in place if the sum has another dtype, or a dimension of a transform that the product lacks.
    if product.dtype == term.dtype and not has_func_transforms():
        return product.add_(term)
    return product + term
