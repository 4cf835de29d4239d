"""Tensors in one of the formats that other libraries and files have, too."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_formats.conversion.target.recognized_formats import is_format
from gossamer_formats.tensor import SparseTensor, convert
from gossamer_ir.core.axis_kinds import indices_of


def in_one_of(tensor: SparseTensor, names: Sequence[str]) -> SparseTensor:
    """Return the tensor itself if it has one of these formats, else a conversion to the first one.

    Duplicates are kept.

    >>> from scipy.sparse import eye_array
    >>> from gossamer_formats import from_scipy
    >>> in_one_of(from_scipy(eye_array(2)).asformat("ell"), ("csr", "coo")).format
    'csr'
    """
    if any(is_format(tensor.description, name) for name in names):
        return tensor
    return convert(tensor, names[0], duplicates="keep").tensor


def is_sorted_and_unique(tensor: SparseTensor) -> bool:
    """Return whether the innermost axis of the tensor declares that coordinates are sorted and unique."""
    declared = indices_of(tensor.description.axes[-1])
    return declared is not None and declared.sorted and declared.unique
