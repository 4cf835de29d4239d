"""Tensors in one of the formats that other libraries and files have, too."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_formats.checks.coordinate_order import without_order
from gossamer_formats.conversion.dtypes import with_index_dtype
from gossamer_formats.conversion.parameters import describe
from gossamer_formats.installed_formats import format_names
from gossamer_formats.storage import with_value_dtype
from gossamer_formats.tensor import SparseTensor, convert
from gossamer_ir.core.axis_kinds import indices_of
from gossamer_ir.nodes import FormatDescription


def in_one_of(tensor: SparseTensor, names: Sequence[str]) -> SparseTensor:
    """Return the tensor itself if it has one of these formats, else a conversion to the first one.

    Duplicates are kept.

    >>> from scipy.sparse import eye_array
    >>> from gossamer_formats import from_scipy
    >>> in_one_of(from_scipy(eye_array(2)).asformat("ell"), ("csr", "coo")).format.name
    'csr'
    """
    if is_standard(tensor) and tensor.format.name in names:
        return tensor
    return convert(tensor, names[0], duplicates="keep").tensor


def is_standard(tensor: SparseTensor) -> bool:
    """Return whether the tensor's description is that of the format of its name, but for dtypes and order."""
    name = tensor.format.name
    if name not in format_names():
        return False
    return _essence(tensor.format) == _essence(describe(name, rank=tensor.ndim))


def is_sorted_and_unique(tensor: SparseTensor) -> bool:
    """Return whether the innermost axis of the tensor declares that coordinates are sorted and unique."""
    declared = indices_of(tensor.format.axes[-1])
    return declared is not None and declared.sorted and declared.unique


def _essence(description: FormatDescription) -> FormatDescription:
    """Return the description without what tensors of the same format may differ in."""
    return with_value_dtype(with_index_dtype(without_order(description), "int32"), "float32")
