"""The sums of products of a layer of graphs as one operator: terms and relu are added where the sum is.

Composed of operators of torch, each term and relu take a new array of the size of the result, whose pages the
system zeroes first.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, ParamSpec

import torch

from gossamer_torch.custom_ops.products import sampled_product, sparse_product
from gossamer_torch.custom_ops.registration import GradientsByName, torch_operator
from gossamer_torch.custom_ops.tall_products import (
    dense_product,
    gradient_before_relu,
    product_over_rows,
)
from gossamer_torch.func_transforms import has_func_transforms, is_wrapped

P = ParamSpec("P")


def _new_sum(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x.new_empty((x.shape[0], weight.shape[0]))


def _sum_gradients(
    gradient: torch.Tensor,
    needed: frozenset[str],
    x: torch.Tensor,
    weight: torch.Tensor,
    other: torch.Tensor | None,
    other_weight: torch.Tensor | None,
) -> GradientsByName:
    gradients = _factor_gradients(gradient, needed, x=x, weight=weight)
    if other is not None and other_weight is not None:
        gradients |= _factor_gradients(gradient, needed, other=other, other_weight=other_weight)
    if "bias" in needed:
        gradients["bias"] = gradient.sum(0)
    return gradients


def _affine_sum(
    x: torch.Tensor,
    weight: torch.Tensor,
    other: torch.Tensor | None,
    other_weight: torch.Tensor | None,
    bias: torch.Tensor | None,
) -> torch.Tensor:
    """Return `x @ weight.T + other @ other_weight.T + bias`, without the terms that are None."""
    total = dense_product(x, weight.t(), bias)
    if other is not None and other_weight is not None:
        total.addmm_(other, other_weight.t())
    return total


def _new_convolution(x: torch.Tensor, weight: torch.Tensor, crow: torch.Tensor) -> torch.Tensor:
    return x.new_empty((crow.shape[0] - 1, weight.shape[0]))


def _convolution_gradients(
    gradient: torch.Tensor,
    needed: frozenset[str],
    values: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    target: torch.Tensor | None,
    root_weight: torch.Tensor | None,
    crow: torch.Tensor,
    col: torch.Tensor,
    columns: int,
) -> GradientsByName:
    gradient = gradient.contiguous()
    gradients: dict[str, torch.Tensor] = {}
    if "values" in needed:
        gradients["values"] = sampled_product(gradient, x @ weight.t(), crow, col)
    if "bias" in needed:
        gradients["bias"] = gradient.sum(0)
    if "x" in needed or "weight" in needed:
        # Through the matrix first: the other products then have the features of the result, which are fewer.
        back = sparse_product(values, gradient, crow, col, columns, transposed=True)
        gradients |= _factor_gradients(back, needed, x=x, weight=weight)
    if root_weight is None:
        return gradients
    if target is not None:
        root_gradients = _factor_gradients(gradient, needed, target=target, root_weight=root_weight)
        return gradients | root_gradients
    if "x" in needed:
        gradients["x"] = _add_product(gradients["x"], gradient, root_weight)
    return gradients | _factor_gradients(gradient, needed - {"x"}, x=x, root_weight=root_weight)


def _convolution(
    values: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    target: torch.Tensor | None,
    root_weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    crow: torch.Tensor,
    col: torch.Tensor,
    columns: int,
) -> torch.Tensor:
    """Return `A @ (x @ weight.T) + target @ root_weight.T + bias` for a matrix A in CSR, without the terms
    whose weights are None. `target` is `x` if it is None."""
    factor = dense_product(x, weight.t())
    total = sparse_product(values, factor, crow, col, columns, transposed=False)
    if bias is not None:
        total.add_(bias)
    if root_weight is not None:
        total.addmm_(x if target is None else target, root_weight.t())
    return total


def _factor_gradients(
    gradient: torch.Tensor, needed: frozenset[str], **factors: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Return the gradients of the two factors of `left @ right.T` that are needed, by name."""
    (left_name, left), (right_name, right) = factors.items()
    gradients = {}
    if left_name in needed:
        gradients[left_name] = dense_product(gradient, right)
    if right_name in needed:
        gradients[right_name] = product_over_rows(gradient, left)
    return gradients


def _add_product(total: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return the sum of a tensor without other references, to which is added in place, and a product."""
    # Not in place if a factor has a dimension of a transform that the sum may lack.
    if has_func_transforms() or is_wrapped(left):
        return torch.addmm(total, left, right)
    return total.addmm_(left, right)


def _with_relu(kernel: Callable[P, torch.Tensor]) -> Callable[P, torch.Tensor]:
    """Return the kernel that applies relu to a new result."""

    @wraps(kernel)
    def compute_relu(*values: P.args, **others: P.kwargs) -> torch.Tensor:
        return kernel(*values, **others).relu_()

    return compute_relu


def _before_relu(gradients: Callable[..., GradientsByName]) -> Callable[..., GradientsByName]:
    """Return the rule for the gradients of relu of a result; it reads the result, too."""

    def rule(
        gradient: torch.Tensor, needed: frozenset[str], *, result: torch.Tensor, **read: Any
    ) -> GradientsByName:
        before = gradient_before_relu(gradient, result)
        return gradients(before, needed, **read)

    signature = inspect.signature(gradients)
    last = inspect.Parameter("result", inspect.Parameter.KEYWORD_ONLY)
    parameters = [*signature.parameters.values(), last]
    rule.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # of functions
    return rule


_sum_operator = partial(torch_operator, new_result=_new_sum, runs_anywhere=True)
affine_sum = _sum_operator("affine_sum", gradients=_sum_gradients)(_affine_sum)
rectified_affine_sum = _sum_operator(
    "rectified_affine_sum", gradients=_before_relu(_sum_gradients)
)(_with_relu(_affine_sum))

_convolution_operator = partial(torch_operator, new_result=_new_convolution, runs_anywhere=True)
graph_convolution = _convolution_operator("graph_convolution", gradients=_convolution_gradients)(
    _convolution
)
rectified_graph_convolution = _convolution_operator(
    "rectified_graph_convolution", gradients=_before_relu(_convolution_gradients)
)(_with_relu(_convolution))
