"""The arguments of a program that checks facts: arrays, their sizes, and the values of each property."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, Union

import numpy as np

from gossamer_backend.arguments.array_view import ArrayView
from gossamer_backend.arguments.size_equations import Scalars, evaluate_size
from gossamer_backend.compiled_checks.buffer_checks import BufferCheck
from gossamer_ir.core.integers import MAX_INT64
from gossamer_ir.facts.index_arrays import MAX_LIST_LENGTH
from gossamer_ir.support.arrays import Array

CheckedArray: TypeAlias = "Array | ArrayView"
"""An array of NumPy, or the view of one in another memory, of which nothing is read here."""


def argument_values(
    check: BufferCheck, scalars: Scalars, arrays: Mapping[str, CheckedArray]
) -> list[CheckedArray | int] | None:
    """Return the arguments of a test in the order of its parameters; None if they cannot be passed."""
    array = arrays[check.buffer]
    offsets = None if check.offsets is None else arrays[check.offsets]
    # Those of another memory are tested by the program.
    if isinstance(offsets, np.ndarray) and not _are_offsets_of(offsets, array.size):
        return None
    values: list[CheckedArray | int] = [array, array.size]
    for arguments_of in _ARGUMENTS:
        arguments = arguments_of(check, scalars, arrays)
        if arguments is None:
            return None
        values += arguments
    return values


def _of_range(
    check: BufferCheck, scalars: Scalars, arrays: Mapping[str, CheckedArray]
) -> tuple[int, ...] | None:
    """Return the least and the greatest value allowed; None if there is no such value."""
    if not check.ranges:
        return ()
    limits = np.iinfo(check.test.dtype)
    low = max(evaluate_size(fact.low, scalars, arrays=_of_numpy(arrays)) for fact in check.ranges)
    last = (
        min(evaluate_size(fact.high, scalars, arrays=_of_numpy(arrays)) for fact in check.ranges)
        - 1
    )
    low, last = max(low, int(limits.min)), min(last, int(limits.max), MAX_INT64)
    return (low, last) if low <= last else None


def _of_rows(
    check: BufferCheck, scalars: Scalars, arrays: Mapping[str, CheckedArray]
) -> tuple[int, ...]:
    """Return the length of a row."""
    return arrays[check.buffer].shape[-1:] if check.test.in_rows else ()


def _of_distinct(
    check: BufferCheck, scalars: Scalars, arrays: Mapping[str, CheckedArray]
) -> tuple[int, ...] | None:
    """Return the span of the values; None if it is unknown, or too large for a list of marks. Those of
    another memory are not read: their span is that of the values that a range allows."""
    if not check.test.distinct:
        return ()
    array = arrays[check.buffer]
    if isinstance(array, np.ndarray):
        return _value_range(array)
    limits = _of_range(check, scalars, arrays)
    if not limits:
        return None
    low, last = limits
    span = last - low + 1
    return (low, span) if span <= MAX_LIST_LENGTH * array.size else None


def _of_values(
    check: BufferCheck, scalars: Scalars, arrays: Mapping[str, CheckedArray]
) -> tuple[int, ...]:
    """Return the position and the value of each known element."""
    sizes = [size for fact in check.values for size in (fact.index, fact.value)]
    return tuple(evaluate_size(size, scalars, arrays=_of_numpy(arrays)) for size in sizes)


def _of_pad(
    check: BufferCheck, scalars: Scalars, arrays: Mapping[str, CheckedArray]
) -> tuple[int, ...] | None:
    """Return the value of padding; None if the dtype of the array cannot represent it."""
    if check.pad is None:
        return ()
    limits = np.iinfo(check.test.dtype)
    pad = evaluate_size(check.pad.length, scalars, arrays=_of_numpy(arrays))
    return (pad,) if limits.min <= pad <= limits.max else None


_Arguments: TypeAlias = Callable[
    [BufferCheck, Scalars, Mapping[str, CheckedArray]], Union[tuple[int, ...], None]
]
_ARGUMENTS: tuple[_Arguments, ...] = (_of_range, _of_rows, _of_distinct, _of_pad, _of_values)
"""The arguments of each property that a test can have, in the order of its parameters. A property that is
not tested has none."""


def _value_range(array: Array) -> tuple[int, int] | None:
    """Return the least value of an array and the size of its range of values; None if the range is too large
    for a list of marks."""
    if not array.size:
        return 0, 1
    least, most = int(array.min()), int(array.max())
    return None if most - least >= MAX_LIST_LENGTH * array.size else (least, most - least + 1)


def _are_offsets_of(offsets: Array, size: int) -> bool:
    """Return whether offsets start at 0 and end at the size of an array."""
    flat = offsets.reshape(-1)
    return flat.size > 0 and (int(flat[0]), int(flat[-1])) == (0, size)


def _of_numpy(arrays: Mapping[str, CheckedArray]) -> dict[str, Array]:
    """Return the arrays whose elements bounds may name."""
    return {name: array for name, array in arrays.items() if isinstance(array, np.ndarray)}
