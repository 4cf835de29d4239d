"""The operators that other distributions compute for tensors in formats of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gossamer_formats import SparseTensor
from gossamer_formats.internal_api import find_operator, is_format


def format_operator(name: str, matrix: Any) -> Callable[..., Any] | None:
    """Return the function that a distribution registers for an operator of matrices in this format.

    None for anything but a tensor in a named format, and for a format without this operator, which is
    converted to CSR. `PluginError` if the function cannot be used, also if another distribution registers
    one for CSR.

    >>> from scipy.sparse import eye_array
    >>> from gossamer_formats import from_scipy
    >>> format_operator("spmm", from_scipy(eye_array(2)).asformat("coo"))
    """
    if not isinstance(matrix, SparseTensor):
        return None
    if not is_format(matrix.description, matrix.format):
        return None
    return find_operator(name, format=matrix.format)
