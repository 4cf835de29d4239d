"""Checks of the parts that a composable format returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer_formats.checks.storage_checks import require_valid_storage
from gossamer_formats.conversion.by_numpy.stored_elements import stored_elements
from gossamer_formats.decomposition.part import Part
from gossamer_formats.permutation import UNSTORED, occupied_entries, stored_count
from gossamer_formats.tensors.sparse_tensor import SparseTensor
from gossamer_ir.errors import FormatError, PluginError
from gossamer_support.arrays import Array
from gossamer_support.message_texts import amount


def required_parts(
    returned: Sequence[Any], matrix: SparseTensor, *, format_name: str
) -> list[Part]:
    """Return the parts of a matrix that a composable format has made, once they are checked.

    Raises `PluginError` (`plugin.composable_format`) unless they are `Part`s with names of their own, the
    shape and dtype of the matrix, and a value index in the matrix for each value, and each value of the
    matrix is in one of them.

    >>> from scipy.sparse import eye_array
    >>> required_parts([7], SparseTensor(eye_array(2)), format_name="halves")
    Traceback (most recent call last):
    ...
    gossamer_support.errors.PluginError: The composable format 'halves' returned an object of type 'int'; \
expected a gossamer_formats.Part. [plugin.composable_format]
    """
    names: set[str] = set()
    parts: list[Part] = []
    for part in returned:
        if not isinstance(part, Part):
            raise _error(
                format_name,
                f"returned an object of type '{type(part).__name__}'; expected a gossamer_formats.Part.",
            )
        _require_name(part.name, names, format_name)
        _require_fitting(part, matrix, format_name)
        parts.append(part)
    _require_each_once(parts, matrix.nnz, format_name)
    return parts


def require_disjoint(parts: Sequence[Part]) -> None:
    """Check the arrays of parts, and raise `FormatError` (`format.parts`) if an element is in two of them.

    >>> from scipy.sparse import eye_array
    >>> part = Part("all", SparseTensor(eye_array(2)), np.arange(2))
    >>> require_disjoint([part, part._replace(name="again")])
    Traceback (most recent call last):
    ...
    gossamer_ir.errors.FormatError: The element (0, 0) is in the parts 'all' and 'again'; expected each \
element in one part. [format.parts]
    """
    owners: list[Array] = []
    keys: list[Array] = []
    for number, part in enumerate(parts):
        require_valid_storage(part.tensor.storage)
        elements = stored_elements(part.tensor.storage)
        is_stored = part.permutation[elements.value_indices] != UNSTORED
        rows, columns = (array[is_stored] for array in elements.coordinates)
        keys.append(rows * part.tensor.shape[1] + columns)
        owners.append(np.full(rows.size, number))
    all_keys = np.concatenate([np.zeros(0, np.int64), *keys])
    owner = np.concatenate([np.zeros(0, np.int64), *owners])
    order = np.argsort(all_keys, kind="stable")
    repeated = np.flatnonzero(all_keys[order[1:]] == all_keys[order[:-1]])
    if repeated.size:
        first, second = order[repeated[0]], order[repeated[0] + 1]
        row, column = divmod(int(all_keys[first]), parts[0].tensor.shape[1])
        raise FormatError(
            "format.parts",
            f"The element ({row}, {column}) is in the parts '{parts[owner[first]].name}' and "
            f"'{parts[owner[second]].name}'; expected each element in one part.",
        )


def _require_name(name: Any, names: set[str], format_name: str) -> None:
    """Raise unless a name is not in `names` yet, to which it is added, and can end that of a parameter."""
    if not isinstance(name, str) or not f"_{name}".isidentifier():
        raise _error(
            format_name, f"named a part {name!r}; expected letters, digits and underscores only."
        )
    if name in names:
        raise _error(format_name, f"named two parts '{name}'; expected a name of its own for each.")
    names.add(name)


def _require_fitting(part: Part, matrix: SparseTensor, format_name: str) -> None:
    tensor, permutation = part.tensor, part.permutation
    if tensor.shape != matrix.shape or tensor.dtype != matrix.dtype:
        raise _error(
            format_name,
            f"returned the part '{part.name}' with the shape {tensor.shape} and the dtype {tensor.dtype}; "
            f"expected {matrix.shape} and {matrix.dtype}, those of the matrix.",
        )
    count = tensor.storage.values.size
    if permutation.shape != (count,) or permutation.dtype.kind != "i":
        raise _error(
            format_name,
            f"returned the part '{part.name}' with {amount(count, 'value')} and a permutation of the shape "
            f"{permutation.shape} and the dtype {permutation.dtype}; expected a signed integer for each "
            "value.",
        )


def _require_each_once(parts: Sequence[Part], count: int, format_name: str) -> None:
    """Raise unless the parts have each of `count` values of the matrix once."""
    # One more at the end, which `UNSTORED` selects.
    is_stored = np.zeros(count + 1, bool)
    count_of_parts = 0
    for part in parts:
        permutation = part.permutation
        if not permutation.size:
            continue
        if permutation.min() < UNSTORED or permutation.max() >= count:
            raise _error(
                format_name,
                f"returned the part '{part.name}', whose permutation has indices from {permutation.min()} to "
                f"{permutation.max()}; expected {UNSTORED} to {count - 1}.",
            )
        is_stored[permutation] = True
        count_of_parts += stored_count(permutation)
    # As many as there are, and none missing: a tenth of the time of counting each.
    if count_of_parts == count and is_stored[:count].all():
        return
    stored_of_parts = [occupied_entries(part.permutation) for part in parts]
    times = np.bincount(np.concatenate([np.zeros(0, np.int64), *stored_of_parts]), minlength=count)
    first = int(np.argmax(times != 1))
    raise _error(
        format_name,
        f"stored value {first} of the matrix in {amount(int(times[first]), 'slot')}; each value must be in "
        "exactly one part.",
    )


def _error(format_name: str, message: str) -> PluginError:
    return PluginError(
        "plugin.composable_format", f"The composable format '{format_name}' {message}"
    )
