"""Convolution over the occupied voxels of a sparse grid."""

from __future__ import annotations

import math
from itertools import product
from typing import NamedTuple

import torch

from gossamer_ir.errors import ArgumentError
from gossamer_torch.checks import INDEX_TENSOR_DTYPES, require_dense, require_tensor_shape
from gossamer_torch.kept_results import ResultKey
from gossamer_torch.nn.propagation import add_to_product, product_with_bias
from gossamer_torch.operators.gather_multiply_scatter import gather_multiply_scatter


class KernelMap(NamedTuple):
    """The products of a sparse convolution: their sources and targets by element of the kernel, without those
    of the middle one, and where those of each element begin; and the number of voxels."""

    sources: torch.Tensor
    targets: torch.Tensor
    offsets: torch.Tensor
    voxels: int


class SparseConv3d(torch.nn.Module):
    """A submanifold convolution (Graham, Engelcke and van der Maaten, CVPR 2018): the results are at the same
    voxels as the features, and voxels that are not stored are zero.

    `forward` takes `features` (N by `in_channels`) and `coordinates` (N by 3 integers, or N by 4 with the
    number of the sample first, all different), or their `kernel_map`; it returns N by `out_channels`. The
    result at p is the sum of `features` at p + offset times `weight[element]`, where elements are the offsets
    of the kernel in the order of the last dimension first. `kernel_size` is odd. Gradients flow to features
    and parameters.

    Raises `ArgumentError` (`layer.kernel_size`, `operand.shape`, `operand.duplicates`, `operand.range`).

    >>> coordinates = torch.tensor([[0, 0, 0], [0, 0, 1], [5, 5, 5]])
    >>> SparseConv3d(8, 4)(torch.ones(3, 8), coordinates).shape
    torch.Size([3, 4])
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int = 3, *, bias: bool = True
    ) -> None:
        super().__init__()
        if kernel_size < 1 or kernel_size % 2 == 0:
            raise ArgumentError(
                "layer.kernel_size",
                f"The kernel has the size {kernel_size}; expected an odd number from 1.",
            )
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = kernel_size
        elements = kernel_size**3
        self.weight = torch.nn.Parameter(torch.empty(elements, in_channels, out_channels))
        self.bias = torch.nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters as `torch.nn.Conv3d` does."""
        bound = (self.in_channels * self.kernel_size**3) ** -0.5
        for parameter in (self.weight, self.bias):
            if parameter is not None:
                torch.nn.init.uniform_(parameter, -bound, bound)

    def forward(
        self, features: torch.Tensor, coordinates: torch.Tensor | KernelMap
    ) -> torch.Tensor:
        """Return the features of all voxels."""
        pairs = coordinates
        if not isinstance(pairs, KernelMap):
            pairs = kernel_map(pairs, self.kernel_size)
        require_dense("features", features)
        require_tensor_shape("features", features, (pairs.voxels, self.in_channels))
        middle = self.weight.shape[0] // 2
        output = product_with_bias(features, self.weight[middle], self.bias)
        others = torch.cat([self.weight[:middle], self.weight[middle + 1 :]])
        sums = gather_multiply_scatter(
            features, others, pairs.sources, pairs.targets, pairs.offsets, features.shape[0]
        )
        return add_to_product(output, sums)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"


_KERNEL_MAP = ResultKey[KernelMap]("the products of a submanifold convolution")


def kernel_map(coordinates: torch.Tensor, kernel_size: int = 3) -> KernelMap:
    """Return the products of a submanifold convolution, made once for a tensor of coordinates.

    >>> kernel_map(torch.tensor([[0, 0, 0], [0, 0, 1]])).sources
    tensor([0, 1])
    """
    require_dense("coordinates", coordinates, dtypes=INDEX_TENSOR_DTYPES)
    if coordinates.dim() != 2 or coordinates.shape[1] not in (3, 4):
        require_tensor_shape("coordinates", coordinates, (None, 3))

    def make() -> KernelMap:
        return _kernel_map(coordinates.long(), kernel_size)

    return _KERNEL_MAP.get([coordinates], make, options=(kernel_size,))


def _kernel_map(coordinates: torch.Tensor, kernel_size: int) -> KernelMap:
    reach = kernel_size // 2
    keys, strides = _keys(coordinates, reach)
    sorted_keys, order = torch.sort(keys)
    if bool((sorted_keys.diff() == 0).any()):
        raise ArgumentError(
            "operand.duplicates",
            "'coordinates' has a voxel twice; expected different ones.",
            hint="Add up the features of equal voxels.",
        )
    sources, targets, offsets = [], [], [0]
    for offset in product(range(-reach, reach + 1), repeat=3):
        if any(offset):
            shift = sum(step * stride for step, stride in zip(offset, strides[-3:], strict=True))
            wanted = keys + shift
            places = torch.searchsorted(sorted_keys, wanted).clamp_(max=len(keys) - 1)
            stored = torch.nonzero(sorted_keys[places] == wanted)[:, 0]
            sources.append(order[places[stored]])
            targets.append(stored)
            offsets.append(offsets[-1] + len(stored))
    empty = [keys.new_empty(0)]
    return KernelMap(
        torch.cat(sources or empty),
        torch.cat(targets or empty),
        torch.tensor(offsets, device=keys.device),
        len(keys),
    )


_MAX_VOXELS = 2**63 - 1


def _keys(coordinates: torch.Tensor, reach: int) -> tuple[torch.Tensor, list[int]]:
    """Return a number for each voxel and what a step along each dimension adds to it; a step out of the grid
    does not lead to another voxel."""
    if not len(coordinates):
        return coordinates.new_empty(0), [0, 0, 0]
    least, most = coordinates.min(0).values, coordinates.max(0).values
    pairs = zip(least.tolist(), most.tolist(), strict=True)
    sizes = [last - first + 1 + 2 * reach for first, last in pairs]
    if math.prod(sizes) > _MAX_VOXELS:
        raise ArgumentError(
            "operand.range",
            f"'coordinates' are in a grid of {' by '.join(map(str, sizes))} voxels; expected fewer than "
            "2**63 voxels.",
            hint="Use larger voxels, or several grids.",
        )
    strides = [1]
    for size in reversed(sizes[1:]):
        strides.insert(0, strides[0] * size)
    shifted = coordinates - least + reach
    steps = torch.tensor(strides, device=coordinates.device)
    return (shifted * steps).sum(1), strides
