"""The arguments of a program that checks facts: arrays, their sizes, and the values of each property."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, Union

import numpy as np

from gossamer_backend.arguments.size_equations import Scalars, evaluate_size
from gossamer_backend.compiled_checks.buffer_checks import BufferCheck
from gossamer_ir.core.integers import MAX_INT64
from gossamer_ir.facts.index_arrays import MAX_LIST_LENGTH
from gossamer_ir.support.arrays import Array


def argument_values(
    check: BufferCheck, scalars: Scalars, arrays: Mapping[str, Array]
) -> list[Array | int] | None:
    """Return the arguments of a test in the order of its parameters; None if they cannot be passed."""
    array = arrays[check.buffer]
    if check.offsets is not None and not _are_offsets_of(arrays[check.offsets], array):
        return None
    values: list[Array | int] = [array, array.size]
    for arguments_of in _ARGUMENTS:
        arguments = arguments_of(check, scalars, arrays)
        if arguments is None:
            return None
        values += arguments
    return values


def _of_range(
    check: BufferCheck, scalars: Scalars, arrays: Mapping[str, Array]
) -> tuple[int, ...] | None:
    """Return the least and the greatest value allowed; None if there is no such value."""
    if not check.ranges:
        return ()
    limits = np.iinfo(check.test.dtype)
    low = max(evaluate_size(fact.low, scalars, arrays=arrays) for fact in check.ranges)
    last = min(evaluate_size(fact.high, scalars, arrays=arrays) for fact in check.ranges) - 1
    low, last = max(low, int(limits.min)), min(last, int(limits.max), MAX_INT64)
    return (low, last) if low <= last else None


def _of_rows(check: BufferCheck, scalars: Scalars, arrays: Mapping[str, Array]) -> tuple[int, ...]:
    """Return the length of a row."""
    return arrays[check.buffer].shape[-1:] if check.test.in_rows else ()


def _of_distinct(
    check: BufferCheck, scalars: Scalars, arrays: Mapping[str, Array]
) -> tuple[int, ...] | None:
    """Return the span of the values; None if it is too large for a list of marks."""
    return _value_range(arrays[check.buffer]) if check.test.distinct else ()


def _of_pad(
    check: BufferCheck, scalars: Scalars, arrays: Mapping[str, Array]
) -> tuple[int, ...] | None:
    """Return the value of padding; None if the dtype of the array cannot represent it."""
    if check.pad is None:
        return ()
    limits = np.iinfo(check.test.dtype)
    pad = evaluate_size(check.pad.length, scalars, arrays=arrays)
    return (pad,) if limits.min <= pad <= limits.max else None


_Arguments: TypeAlias = Callable[
    [BufferCheck, Scalars, Mapping[str, Array]], Union[tuple[int, ...], None]
]
_ARGUMENTS: tuple[_Arguments, ...] = (_of_range, _of_rows, _of_distinct, _of_pad)
"""The arguments of each property that a test can have, in the order of its parameters. A property that is
not tested has none."""


def _value_range(array: Array) -> tuple[int, int] | None:
    """Return the least value of an array and the size of its range of values; None if the range is too large
    for a list of marks."""
    if not array.size:
        return 0, 1
    least, most = int(array.min()), int(array.max())
    return None if most - least >= MAX_LIST_LENGTH * array.size else (least, most - least + 1)


def _are_offsets_of(offsets: Array, array: Array) -> bool:
    """Return whether offsets start at 0 and end at the size of an array."""
    flat = offsets.reshape(-1)
    return flat.size > 0 and (int(flat[0]), int(flat[-1])) == (0, array.size)
