"""A part of a tensor that is stored in parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gossamer_formats.description_sizes import shape_of
from gossamer_formats.storage import Storage, values_handle
from gossamer_formats.tensors.sparse_tensor import SparseTensor
from gossamer_ir.nodes import Var
from gossamer_support.arrays import Array


class Part(NamedTuple):
    """A part of a tensor: some of its elements, in a format of their own.

    `permutation` has for each value of the part its value index in the source, `UNSTORED` for a
    value that fills a slot without an element. `fixed_sizes` are the sizes of the format that kernels are
    compiled for, such as the width of a bucket: parts with equal formats and fixed sizes share a kernel.

    >>> import numpy as np
    >>> from gossamer_formats import from_arrays
    >>> tensor = from_arrays("ell", (2, 3), data=np.ones(2), indices=np.array([2, 0]))
    >>> Part("left", tensor, np.array([0, 3]), {"width": 1}).symbolic_sizes
    {}
    """

    name: str
    tensor: SparseTensor
    permutation: Array
    fixed_sizes: Mapping[str, int] = {}

    @property
    def values_name(self) -> str:
        """The name of the array of values."""
        return values_handle(self.tensor.description)

    @property
    def symbolic_sizes(self) -> dict[str, int]:
        """The sizes of the format that are neither fixed nor those of the logical shape: they are parameters
        of a program over the part."""
        description = self.tensor.description
        other_sizes = {size.name for size in shape_of(description) if isinstance(size, Var)}
        other_sizes |= self.fixed_sizes.keys()
        return {name: size for name, size in self.tensor.sizes.items() if name not in other_sizes}


def part_of(
    name: str, storage: Storage, permutation: Array, *, fixed_sizes: Mapping[str, int]
) -> Part:
    """Return a part of valid arrays, which are owned, or new and the caller keeps no reference to them."""
    tensor = SparseTensor.from_new(storage)
    permutation.flags.writeable = False
    return Part(name, tensor, permutation, fixed_sizes)
