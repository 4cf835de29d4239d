"""Recognizes the format of a description: any description can have any name."""

from __future__ import annotations

from functools import lru_cache

from gossamer_formats.checks.coordinate_order import without_order
from gossamer_formats.conversion.destination.dtypes import with_index_dtype
from gossamer_formats.description_sizes import shape_of
from gossamer_formats.registry.formats import format_names
from gossamer_formats.storage import with_value_dtype
from gossamer_ir.nodes import FormatDescription


# Cached, because operators ask at each call: descriptions keep their hash, so that it takes 0.1 microseconds.
@lru_cache(maxsize=256)
def is_format(description: FormatDescription, name: str) -> bool:
    """Return whether a description is that of the format of this name, but for dtypes and order.

    >>> from msgspec.structs import replace
    >>> from gossamer_formats import csr
    >>> from gossamer_formats.descriptions.ell import ell
    >>> is_format(csr("float64", sorted=False), "csr")
    True
    >>> is_format(replace(ell(), name="csr"), "csr")
    False
    """
    if description.name != name or name not in format_names():
        return False
    # Imported late: for tensors only.
    from gossamer_formats.conversion.destination.conversion_destination import describe

    return _essence(description) == _essence(describe(name, ndim=len(shape_of(description))))


def _essence(description: FormatDescription) -> FormatDescription:
    """Return the description with canonical dtypes and without order declarations, for comparison."""
    return with_value_dtype(with_index_dtype(without_order(description), "int32"), "float32")
