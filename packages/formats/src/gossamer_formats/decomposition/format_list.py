"""Parts in formats that a user lists, each with the elements that a function chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from gossamer_formats.conversion.by_numpy.store_elements import store_elements
from gossamer_formats.conversion.by_numpy.stored_elements import Elements, select_elements
from gossamer_formats.conversion.conversion_history import require_ndim
from gossamer_formats.conversion.destination.conversion_destination import conversion_destination
from gossamer_formats.conversion.destination.conversion_options import ConversionOptions
from gossamer_formats.decomposition.part import Part, part_of
from gossamer_formats.tensors.sparse_tensor import SparseTensor
from gossamer_ir.errors import FormatError
from gossamer_ir.nodes import FormatDescription
from gossamer_support.arrays import Array
from gossamer_support.message_texts import amount

Chooser: TypeAlias = Callable[[Array, Array], Array]
"""Takes the rows and the columns of all elements; returns which of them a part has, as an array of bools."""

ChosenFormat: TypeAlias = (
    str
    | FormatDescription
    | tuple[str | FormatDescription, Chooser | None]
    | tuple[str | FormatDescription, Chooser | None, dict[str, int]]
)
"""A format; the function that chooses its elements (None, or no function: all that are left); and the
parameters of the format."""

REFUSE_DUPLICATES = ConversionOptions(duplicates="error")


def chosen_parts(matrix: SparseTensor, formats: Sequence[ChosenFormat]) -> Iterator[Part]:
    """Yield the parts of a CSR matrix in a list of formats.

    An element is in the first part whose function chooses it. Parts without elements are left out. Part
    `bsr_1` is that of the format `bsr` that is entry 1 of the list.

    Raises `FormatError`: `format.parts` unless each element is in a part, or if an entry of the list or the
    result of a function is not valid; `format.dimensions`; and the errors of conversions.

    >>> from scipy.sparse import csr_array
    >>> matrix = SparseTensor(csr_array(np.array([[1.0, 0.0, 3.0], [0.0, 4.0, 5.0]])))
    >>> diagonal = ("dia", lambda i, j: i == j)
    >>> [(part.name, part.tensor.arrays["data"].tolist()) for part in chosen_parts(matrix, [diagonal, "csr"])]
    [('dia_0', [1.0, 4.0, 0.0]), ('csr_1', [3.0, 5.0])]
    """
    elements = _elements_of_rows(matrix)
    rows, columns = elements.coordinates
    # The first part that chooses an element has it, so that no element is in two.
    left = np.ones(columns.size, bool)
    for number, entry in enumerate(formats):
        format, chooser, parameters = _entry(entry, number)
        destination = conversion_destination(format, parameters, ndim=matrix.ndim)
        require_ndim(destination.description, matrix.ndim)
        chosen = left if chooser is None else left & _choice(chooser, rows, columns, number)
        left = left & ~chosen
        if chosen.any():
            selected = select_elements(elements, np.flatnonzero(chosen))
            converted = store_elements(
                matrix.storage, selected, destination, options=REFUSE_DUPLICATES
            )
            assert converted.permutation is not None
            name = f"{destination.description.name}_{number}"
            yield part_of(
                name, converted.storage, converted.permutation, fixed_sizes=destination.sizes
            )
    if left.any():
        raise _left_error(left, rows, columns)


def _elements_of_rows(matrix: SparseTensor) -> Elements:
    """Return the elements of a CSR matrix in the order of its arrays."""
    # Functions may multiply coordinates, as in `i * n + j`, which int32 may not hold.
    offsets, columns = matrix.arrays["indptr"], matrix.arrays["indices"].astype(np.int64)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(offsets))
    return Elements((rows, columns), np.arange(columns.size))


def _left_error(left: Array, rows: Array, columns: Array) -> FormatError:
    element, count = int(np.argmax(left)), int(np.count_nonzero(left))
    verb = "belongs" if count == 1 else "belong"
    return FormatError(
        "format.parts",
        f"{amount(count, 'element')} {verb} to no part, for example ({rows[element]}, {columns[element]}).",
        hint="End the list with a format without a function, such as 'csr'.",
    )


def _entry(
    entry: Any, index: int
) -> tuple[str | FormatDescription, Chooser | None, dict[str, int]]:
    chooser: Any = None
    parameters: Any = {}
    match entry:
        case (format, chooser, parameters):
            pass
        case (format, chooser):
            pass
        case format:
            pass
    if (
        not isinstance(format, (str, FormatDescription))
        or not (chooser is None or callable(chooser))
        or not isinstance(parameters, dict)
    ):
        raise FormatError(
            "format.parts",
            f"Entry {index} of the list of formats is {entry!r}; expected a format, or a tuple of a format, "
            "a function that chooses elements, and a dict of parameters.",
        )
    return format, chooser, parameters


def _choice(chooser: Chooser, rows: Array, columns: Array, index: int) -> Array:
    """Return the elements that a function chooses."""
    chosen = np.asarray(chooser(rows, columns))
    if chosen.dtype != bool or chosen.shape != rows.shape:
        raise FormatError(
            "format.parts",
            f"The function of entry {index} of the list of formats returned an array of the shape "
            f"{chosen.shape} and the dtype {chosen.dtype}; expected a bool for each of "
            f"{amount(rows.size, 'element')}.",
        )
    return chosen
