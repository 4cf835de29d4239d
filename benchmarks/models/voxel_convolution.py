"""A submanifold sparse convolution (Graham, Engelcke and van der Maaten, CVPR 2018) with a kernel of
3 x 3 x 3 on the occupied voxels of a scan."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import product

import numpy as np

from benchmarks.matrices import load_arrays_of
from benchmarks.models.model_problem import Arrays, ModelProblem, random_arrays
from gossamer_support.arrays import Array

SCANS = ("pc_spconv_lidar_10cm",)
CHANNELS = (32, 64)


def convolution_problem(scan: str, channels: int) -> ModelProblem:
    """Return the layer with as many channels in as out. `pairs` are the sources and targets of all products,
    in the order of the offsets of the kernel, and `ends` where those of each offset end."""
    pairs, ends, voxels = voxel_pairs(scan)
    arrays = random_arrays(
        29,
        x=(voxels, channels),
        seed=(voxels, channels),
        weights=(len(ends), channels, channels),
        b=(channels,),
    )
    arrays |= {"pairs": pairs, "ends": ends, "coordinates": load_arrays_of(scan)["coords"]}
    leaves, detail = ("x", "weights", "b"), f"{channels} channels"
    return ModelProblem("convolution", scan, arrays, leaves, convolution_oracle, detail=detail)


@cache
def voxel_pairs(scan: str) -> tuple[Array, Array, int]:
    """Return the sources and targets of products by offset, where those of each offset end, and the number of
    voxels. Voxel t receives from that at t + offset."""
    coordinates = load_arrays_of(scan)["coords"].astype(np.int64)
    shifted = coordinates - coordinates.min(0) + 1
    size = shifted.max(0) + 2
    strides = np.array([size[1] * size[2], size[2], 1])
    keys = shifted @ strides
    order = np.argsort(keys)
    pairs, ends = [], [0]
    for offset in product((-1, 0, 1), repeat=3):
        wanted = keys + np.array(offset) @ strides
        places = np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)
        targets = np.flatnonzero(keys[order[places]] == wanted)
        pairs.append(np.stack([order[places[targets]], targets]))
        ends.append(ends[-1] + len(targets))
    return np.concatenate(pairs, axis=1), np.array(ends[1:]), len(keys)


def convolution_oracle(arrays: Mapping[str, Array]) -> Arrays:
    """Return the output and the gradients."""
    x, seed, weights = arrays["x"], arrays["seed"], arrays["weights"]
    output = np.tile(arrays["b"], (len(x), 1))
    x_gradient, weight_gradients = np.zeros_like(x), np.zeros_like(weights)
    parts = np.split(arrays["pairs"], arrays["ends"][:-1], axis=1)
    for number, (sources, targets) in enumerate(parts):
        # A voxel is the target, and the source, of at most one product of an offset.
        output[targets] += x[sources] @ weights[number]
        weight_gradients[number] = x[sources].T @ seed[targets]
        x_gradient[sources] += seed[targets] @ weights[number].T
    return {"output": output, "x": x_gradient, "weights": weight_gradients, "b": seed.sum(0)}
