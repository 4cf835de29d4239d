"""Tensors of torch as arrays of NumPy over the same memory, and back."""

from __future__ import annotations

import torch

from gossamer_formats.internal_api import NUMPY_DTYPES
from gossamer_support.arrays import Array


def shared_array(tensor: torch.Tensor) -> Array:
    """Return a contiguous array over the memory of a tensor; a copy only if the tensor is not contiguous.
    NumPy gets the bits of dtypes that it lacks, as uint16.

    >>> shared_array(torch.ones(2, dtype=torch.bfloat16))
    array([16256, 16256], dtype=uint16)
    """
    plain = tensor.detach().contiguous()
    if plain.dtype.is_floating_point and dtype_name_of(plain) not in NUMPY_DTYPES:
        plain = plain.view(torch.uint16)
    array: Array = plain.numpy()
    return array


def tensor_of(array: Array, dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor over the memory of a new array, converted to a dtype: sums of narrow values are
    float32."""
    return torch.from_numpy(array).to(dtype)


def dtype_name_of(tensor: torch.Tensor) -> str:
    """Return gossamer's name of the dtype of a tensor.

    >>> dtype_name_of(torch.ones(1))
    'float32'
    """
    return torch_dtype_name(tensor.dtype)


def torch_dtype_name(dtype: torch.dtype) -> str:
    """Return gossamer's name of a dtype of torch.

    >>> torch_dtype_name(torch.bfloat16)
    'bfloat16'
    """
    return str(dtype).removeprefix("torch.")
