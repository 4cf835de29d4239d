"""Submanifold sparse convolution of voxels over ELL3D: gather, multiply, scatter for each of 27 offsets.

    Y[i, l] = sum over offsets r and input channels k of X[j(r, i), k] * W[r, k, l]

where j(r, i) is the voxel at offset r from voxel i, if it is occupied. This is the program of relational
convolution with one relation for each offset and one neighbor for each row (Ye and others, ASPLOS 2023,
section 4.4.2), so the kernel is that of `gathered_products` for buckets of width 1.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, product
from typing import Any

import numpy as np

from examples import gathered_products
from examples.datasets import voxels
from examples.example import Call, Example, random_array
from examples.gathered_products import Gathered
from examples.torch_baseline import torch_call
from gossamer_support.arrays import Array

CHANNELS = (32, 64)
"""Input and output channels."""
PANEL = 2048
"""Rows of a panel of the output."""


def kernel_map(coordinates: Array) -> tuple[Array, Array, Array]:
    """Return the pairs of voxels that an offset of a 3 x 3 x 3 filter connects: offset, output and input.

    `coordinates` (voxels by 3) are sorted and unique. Pairs are sorted by offset and output.
    """
    extent = coordinates.max(axis=0, initial=0) + 3
    numbers = np.ravel_multi_index(tuple((coordinates + 1).T), tuple(extent))
    offsets, outputs, inputs = [], [], []
    for number, offset in enumerate(product((-1, 0, 1), repeat=3)):
        sought = numbers + np.dot(offset, [extent[1] * extent[2], extent[2], 1])
        positions = np.searchsorted(numbers, sought)
        is_there = (
            numbers[np.minimum(positions, numbers.size - 1)] == sought
            if numbers.size
            else positions > 0
        )
        outputs.append(np.flatnonzero(is_there))
        inputs.append(positions[is_there])
        offsets.append(np.full(outputs[-1].size, number))
    return np.concatenate(offsets), np.concatenate(outputs), np.concatenate(inputs)


def voxel_convolution(coordinates: Array, channels: tuple[int, int]) -> Gathered:
    """Return a convolution of voxels with random features and weights."""
    pairs = kernel_map(coordinates)
    size, (width_in, width_out) = len(coordinates), channels
    return Gathered(
        (27, size, size),
        pairs,
        np.ones(pairs[0].size, np.float32),
        random_array(size, width_in, seed=2),
        random_array(27, width_in, width_out, seed=3),
    )


def random_voxels(count: int, extent: tuple[int, int, int]) -> Array:
    """Return sorted coordinates of random voxels."""
    chosen = np.random.default_rng(count).integers(0, extent, (count, 3))
    return np.unique(chosen, axis=0).reshape(-1, 3)


def ell3d(inputs: Gathered) -> Call:
    """Prepare the program of gossamer. The rows of a panel of the output stay in the second-level cache."""
    panels = -(-inputs.shape[1] // PANEL)
    return gathered_products.prepare(inputs, (1,), panels=max(2, panels))


def numpy_offsets(inputs: Gathered) -> Call:
    """Gather, multiply and scatter the rows of each offset; an output occurs once for an offset."""
    number, output, source = inputs.coordinates
    bounds = np.searchsorted(number, np.arange(28))
    pairs = [(output[low:high], source[low:high]) for low, high in pairwise(bounds)]

    def call() -> Array:
        result = np.zeros((inputs.shape[1], inputs.w.shape[2]), np.float32)
        for (outputs, sources), weights in zip(pairs, inputs.w, strict=True):
            result[outputs] += inputs.x[sources] @ weights
        return result

    return call


@torch_call
def torch_offsets(torch: Any, inputs: Gathered) -> Callable[[], Any]:
    """Return the same with PyTorch."""
    number, output, source = inputs.coordinates
    bounds = np.searchsorted(number, np.arange(28))
    pairs = [
        (torch.from_numpy(output[low:high]), torch.from_numpy(source[low:high]))
        for low, high in pairwise(bounds)
    ]
    x, w = torch.from_numpy(inputs.x), torch.from_numpy(inputs.w)

    def call() -> Any:
        result = torch.zeros(inputs.shape[1], w.shape[2])
        for (outputs, sources), weights in zip(pairs, w, strict=True):
            result.index_add_(0, outputs, x.index_select(0, sources) @ weights)
        return result

    return call


EXAMPLE = Example(
    "sparse_convolution",
    cases={
        "random": lambda: voxel_convolution(random_voxels(300, (9, 8, 7)), (32, 32)),
        "odd channels": lambda: voxel_convolution(random_voxels(100, (5, 5, 5)), (5, 19)),
        "one voxel": lambda: voxel_convolution(random_voxels(1, (4, 4, 4)), (8, 8)),
        "no voxels": lambda: voxel_convolution(random_voxels(0, (4, 4, 4)), (8, 8)),
    },
    datasets={
        "pc_spconv_lidar_10cm": lambda: voxel_convolution(voxels("pc_spconv_lidar_10cm"), CHANNELS),
    },
    oracle=gathered_products.oracle,
    magnitude=gathered_products.magnitude,
    terms=gathered_products.terms,
    programs={"ell3d": ell3d},
    baselines={"numpy_offsets": numpy_offsets, "torch_offsets": torch_offsets},
)
