"""Tensors in the formats that other libraries and files have, too."""

from __future__ import annotations

from typing import TypeVar

from gossamer_formats.conversion.destination.recognized_formats import is_format
from gossamer_formats.format import Adapter
from gossamer_formats.registry.formats import FORMATS, format_named
from gossamer_formats.tensors.convert import convert
from gossamer_formats.tensors.sparse_tensor import SparseTensor
from gossamer_ir.core.axis_kinds import indices_of
from gossamer_ir.errors import InternalError

T = TypeVar("T", bound=Adapter)

COORDINATE_FORMAT = "coo"
"""The format of files with a line for each element."""


def in_format_with(tensor: SparseTensor, kind: type[T]) -> tuple[SparseTensor, T]:
    """Return the tensor itself and its external format, an adapter of this type, if its format has one; else
    a conversion to CSR, or to coordinates unless the tensor has two dimensions. Duplicates are kept.

    >>> from scipy.sparse import eye_array
    >>> from gossamer_formats import from_scipy
    >>> from gossamer_formats.external_formats.torch_layout import TorchLayout
    >>> exportable, layout = in_format_with(from_scipy(eye_array(2)).asformat("ell"), TorchLayout)
    >>> exportable.format, layout.name
    ('csr', 'sparse_csr')
    """
    format = FORMATS.find(tensor.format)
    external = None if format is None else format.adapter(kind)
    # The name alone is not enough: any description may have it.
    if format is not None and external is not None and is_format(tensor.description, format.name):
        return tensor, external
    name = "csr" if tensor.ndim == 2 else COORDINATE_FORMAT
    external = format_named(name).adapter(kind)
    if external is None:
        raise InternalError(f"The format '{name}' has no such external format.")
    return convert(tensor, name, duplicates="keep").tensor, external


def in_coordinates(tensor: SparseTensor) -> SparseTensor:
    """Return the tensor itself if it stores the coordinates of each element, else a conversion; duplicates
    are kept.

    >>> from scipy.sparse import eye_array
    >>> from gossamer_formats import from_scipy
    >>> in_coordinates(from_scipy(eye_array(2))).arrays["indices_1"]
    array([0, 1], dtype=int32)
    """
    if is_format(tensor.description, COORDINATE_FORMAT):
        return tensor
    return convert(tensor, COORDINATE_FORMAT, duplicates="keep").tensor


def is_sorted_and_unique(tensor: SparseTensor) -> bool:
    """Return whether the innermost axis of the tensor declares that coordinates are sorted and unique."""
    declared = indices_of(tensor.description.axes[-1])
    return declared is not None and declared.sorted and declared.unique
