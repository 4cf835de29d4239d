"""A conversion's destination: a format by name or by description, with its parameters."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import lru_cache, partial
from numbers import Integral
from typing import Any

import msgspec
import numpy as np

from gossamer_formats.conversion.destination.known_sizes import KnownSizes, size_names
from gossamer_formats.format import ContentsOrder, Format
from gossamer_formats.registry.formats import FORMATS, format_named
from gossamer_ir.errors import FormatError
from gossamer_ir.nodes import FormatDescription
from gossamer_support.arrays import Array
from gossamer_support.message_texts import amount


class Destination(msgspec.Struct, frozen=True, eq=False):
    """The format of a conversion's result: its description, the parameters, and the functions that order the
    contents of index arrays (`Format.orders`). `memo` has what earlier conversions have found out.

    >>> from gossamer_formats.descriptions.sell import sell
    >>> Destination(sell(), {"height": 4, "sigma": 8}).sizes
    {'height': 4}
    """

    description: FormatDescription
    parameters: Mapping[str, int] = {}
    orders: Mapping[str, ContentsOrder] = {}
    memo: dict[Hashable, Any] = {}

    @property
    def sizes(self) -> dict[str, int]:
        """The parameters that are sizes of the description."""
        names = size_names(self.description)
        return {name: value for name, value in self.parameters.items() if name in names}


def conversion_destination(
    format: str | FormatDescription,
    parameters: Mapping[str, int],
    *,
    ndim: int,
    order: Array | None = None,
) -> Destination:
    """Return the destination of a conversion of a tensor with `ndim` dimensions.

    `order` has the contents of the format's index array, such as all rows of a matrix, in the order in which
    they are stored. Raises `FormatError`: `format.unknown`, `format.parameter` for a name that the format
    does not have, `format.parameter.missing` for one that it needs, `format.parameter.value` unless a value
    is 1 or more, `format.order` for an order that is not a permutation, or of a format without one.

    >>> conversion_destination("sell", {"height": 4}, ndim=2).sizes
    {'height': 4}
    """
    for name, value in parameters.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= value < 2**31:
            raise FormatError(
                "format.parameter.value",
                f"The parameter '{name}' is {value!r}; expected an integer from 1 to 2**31 - 1.",
            )
    named = format if isinstance(format, FormatDescription) else format_named(format)
    # Those of NumPy become Python's, since the sizes of a tensor are stored.
    destination = _destination_of(
        named, tuple([(name, int(size)) for name, size in parameters.items()]), ndim
    )
    if order is None:
        return destination
    # Not kept: the next tensor has another order.
    return Destination(
        destination.description, destination.parameters, _orders(destination.description, order)
    )


@lru_cache(maxsize=256)
def _destination_of(
    format: Format | FormatDescription, parameters: tuple[tuple[str, int], ...], ndim: int
) -> Destination:
    """Return the destination without a given order: one object for equal arguments."""
    if isinstance(format, FormatDescription):
        return Destination(format, KnownSizes(format, dict(parameters)).known)
    described = _describe(format, ndim)
    values = _with_defaults(format, described, dict(parameters))
    orders = {
        array: partial(_order_array, format.name, order) for array, order in format.orders.items()
    }
    return Destination(described, values, orders)


def _orders(description: FormatDescription, order: Array) -> dict[str, ContentsOrder]:
    """Return the function that orders the only index array of a description as given."""
    if len(description.index_arrays) != 1:
        raise FormatError(
            "format.order",
            f"The format '{description.name}' has {amount(len(description.index_arrays), 'index array')}; "
            "only a format with one takes an order.",
            hint="Use row_groups for rows in any order.",
        )
    if order.ndim != 1 or order.dtype.kind not in "iu":
        raise FormatError(
            "format.order",
            f"The order is an array of {amount(order.ndim, 'dimension')} of {order.dtype}; expected a "
            "vector of integers.",
        )
    return {description.index_arrays[0].name: partial(_checked_order, order)}


def _checked_order(order: Array, counts: Array, _parameters: Mapping[str, int]) -> Array:
    """Return the order of the caller, if it has each possible value once."""
    is_inside = order.size == counts.size and not np.any((order < 0) | (order >= counts.size))
    if not is_inside or np.any(np.bincount(order, minlength=counts.size) != 1):
        raise FormatError(
            "format.order",
            f"The order of {amount(order.size, 'value')} is not a permutation of the numbers from 0 to "
            f"{counts.size - 1}.",
        )
    return order.astype(np.int64, copy=False)


def describe(format: str | FormatDescription, *, ndim: int) -> FormatDescription:
    """Return the description of a format for tensors with `ndim` dimensions.

    >>> describe("coo", ndim=3).buffer.axes
    ('O', 'I0', 'I1', 'I2')
    """
    return (
        format if isinstance(format, FormatDescription) else _describe(format_named(format), ndim)
    )


def _describe(named: Format, ndim: int) -> FormatDescription:
    with FORMATS.errors_of(named.name, doing="describe the"):
        description = named.describe(ndim=ndim) if named.is_of_any_ndim else named.describe()
        if not isinstance(description, FormatDescription):
            raise TypeError(f"it returned {description!r}; expected a FormatDescription")
    return description


def _order_array(
    format_name: str, order: ContentsOrder, counts: Array, sizes: Mapping[str, int]
) -> Array:
    """Return the contents of an index array in the order of a format's function."""
    with FORMATS.errors_of(format_name, doing="order an index array of the"):
        return order(counts, sizes)


def _with_defaults(
    named: Format, described: FormatDescription, parameters: Mapping[str, int]
) -> dict[str, int]:
    possible = {*named.parameters, *size_names(described)}
    for name in parameters:
        if name not in possible:
            raise FormatError(
                "format.parameter",
                f"The format '{named.name}' has no parameter '{name}'; it has "
                f"{', '.join(named.parameters) or 'none'}.",
            )
    values = {**named.parameters, **parameters}
    for name, value in values.items():
        if value is None:
            raise FormatError(
                "format.parameter.missing",
                f"A conversion to '{named.name}' needs the parameter '{name}'.",
                hint=f"Pass {name}=...",
            )
    return {name: value for name, value in values.items() if value is not None}
