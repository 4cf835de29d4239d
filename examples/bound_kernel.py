"""Binds a kernel of a script to a stored tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gossamer_backend import BoundCall, Kernel
from gossamer_formats import SparseTensor


def bound_kernel(
    kernel: Kernel, tensor: SparseTensor, fixed: Mapping[str, int], **others: Any
) -> BoundCall:
    """Return a call of a kernel with the arrays and sizes of a tensor and other arguments.

    The script has the names of the format's description; the sizes in `fixed` are constants of the kernel.
    """
    sizes = {name: size for name, size in tensor.sizes.items() if name not in fixed}
    arguments: dict[str, Any] = {**tensor.arrays, **sizes, **others}
    return kernel.bind(**arguments)
