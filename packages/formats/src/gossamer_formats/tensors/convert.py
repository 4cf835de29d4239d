"""`convert`: a tensor in another format, with the permutation of its values."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_formats.conversion.convert_storage import convert_storage
from gossamer_formats.conversion.destination.conversion_destination import conversion_destination
from gossamer_formats.conversion.destination.conversion_options import (
    ConversionOptions,
    Duplicates,
    Zeros,
)
from gossamer_formats.registry.composable_formats import find_composable
from gossamer_formats.tensors.sparse_tensor import SparseTensor
from gossamer_ir.errors import FormatError
from gossamer_ir.nodes import FormatDescription
from gossamer_support.arrays import Array
from gossamer_support.typed_calls import typed


class Conversion(NamedTuple):
    """A converted tensor. `permutation` has for each of its values its index among those of the source,
    -1 for a value that fills a slot without an element; None if duplicates were added.

    >>> from scipy.sparse import eye_array
    >>> from gossamer_formats import from_scipy
    >>> convert(from_scipy(eye_array(2)), "ell", width=2).permutation
    array([ 0, -1,  1, -1])
    """

    tensor: SparseTensor
    permutation: Array | None


@typed
def convert(
    tensor: SparseTensor,
    format: str | FormatDescription,
    *,
    duplicates: Duplicates = "sum",
    zeros: Zeros | None = None,
    index_dtype: str | None = None,
    order: Array | None = None,
    **parameters: int,
) -> Conversion:
    """Return a tensor in another format, which is named or described.

    `parameters` are those of the format, such as the size of blocks. `duplicates` says what becomes of
    several elements with equal coordinates: their "sum", "keep" all, or "error". `zeros=None` drops zeros
    from a format that stores them to fill dense axes, and keeps those of others; "keep" and "drop" are for
    all. `index_dtype=None` takes int32 if all indices fit. `order` has the rows in the order in which a
    format such as "row_groups" or "sell" stores them, each once. Raises `FormatError`, also where the result
    does not fit in memory.

    >>> from scipy.sparse import eye_array
    >>> from gossamer_formats import from_scipy
    >>> converted = convert(from_scipy(eye_array(3)), "csc")
    >>> converted.tensor.format, converted.permutation.tolist()
    ('csc', [0, 1, 2])
    """
    if find_composable(format) is not None:
        raise FormatError(
            "format.composable",
            f"The format '{format}' is composable: a matrix in it is several tensors, its parts.",
            hint=f"Call decompose(tensor, '{format}'); each part of the result has its permutation.",
        )
    storage, permutation = convert_storage(
        tensor.checked_storage(),
        conversion_destination(format, parameters, ndim=tensor.ndim, order=order),
        options=ConversionOptions(duplicates, zeros, index_dtype),
    )
    return Conversion(SparseTensor.from_new(storage), permutation)
