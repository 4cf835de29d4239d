"""Kernels of programs over a sparse matrix on a GPU, on torch's current stream.

A call returns before the kernel has run. The index arrays of patterns were checked when they were made, so
that a call does not wait for the GPU either.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import torch

import gossamer as gs
from gossamer_backend import Kernel
from gossamer_ir.transform.retype_module import retype_module
from gossamer_torch.devices import DeviceTensor, call_context, required_target
from gossamer_torch.numpy_views import dtype_name_of
from gossamer_torch.patterns import PatternTensors

MAX_DEVICE_KERNELS = 1024
"""The number of kernels that are kept, each for dtypes, a number of features and a target."""


@lru_cache(maxsize=MAX_DEVICE_KERNELS)
def _kernel(
    script: str, dtype: str, index_dtype: str, features: tuple[tuple[str, int], ...], target: str
) -> Kernel:
    module = gs.schedule(script).module
    retyped = retype_module(module, dtype=dtype, index_dtype=index_dtype)
    return gs.compile(retyped, specialize=dict(features), target=target)


def run_over_pattern(
    script: str,
    pattern: PatternTensors,
    arrays: Mapping[str, torch.Tensor],
    *,
    features: Mapping[str, int] | None = None,
) -> None:
    """Run a program over the pattern of a matrix, with arrays of one dtype on its GPU. Kernels are compiled
    for the numbers of `features`."""
    name, first = next(iter(arrays.items()))
    target = required_target(name, first)
    index_dtype = dtype_name_of(pattern.indices)
    fixed = tuple((features or {}).items())
    kernel = _kernel(script, dtype_name_of(first), index_dtype, fixed, target)
    indices = {"indptr": pattern.indptr, "indices": pattern.indices}
    passed: dict[str, Any] = {
        key: DeviceTensor(tensor) for key, tensor in {**arrays, **indices}.items()
    }
    call = kernel.bind(
        verified=tuple(indices), context=call_context(first), n=pattern.shape[1], **passed
    )
    call()
