"""The arguments of a program that checks facts: arrays, their sizes, and the values of each property."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, Union

import numpy as np
from msgspec.structs import replace

from gossamer_backend.arguments.array_view import ArrayView
from gossamer_backend.arguments.size_equations import Scalars, evaluate_size
from gossamer_backend.compiled_checks.buffer_checks import BufferCheck
from gossamer_ir.core.integers import MAX_INT64
from gossamer_ir.facts.index_arrays import MAX_LIST_LENGTH
from gossamer_support.arrays import Array

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


def with_marks(
    check: BufferCheck, scalars: Scalars, arrays: Mapping[str, CheckedArray]
) -> BufferCheck:
    """Return a check that marks values in a list if their span is small enough. Elements of another memory
    are not read: their span is that of the values that a range allows."""
    array = arrays[check.buffer]
    # The list has positions of int64.
    if not check.test.distinct or check.test.dtype == "uint64":
        return check
    if isinstance(array, np.ndarray):
        least, last = (int(array.min()), int(array.max())) if array.size else (0, 0)
    else:
        least, last = _range_values(check, scalars, arrays) or (0, MAX_INT64)
    if last - least >= MAX_LIST_LENGTH * max(array.size, 1):
        return check
    marks = (least, last - least + 1)
    return check._replace(test=replace(check.test, distinct="marked"), marks=marks)


def _range_values(
    check: BufferCheck, scalars: Scalars, arrays: Mapping[str, CheckedArray]
) -> tuple[int, ...] | None:
    """Return the least and the greatest value allowed; None if there is no such value."""
    if not check.ranges:
        return ()
    limits = np.iinfo(check.test.dtype)
    low = max(
        evaluate_size(fact.low, scalars, arrays=_bound_arrays(arrays)) for fact in check.ranges
    )
    last = (
        min(
            evaluate_size(fact.high, scalars, arrays=_bound_arrays(arrays)) for fact in check.ranges
        )
        - 1
    )
    low, last = max(low, int(limits.min)), min(last, int(limits.max), MAX_INT64)
    return (low, last) if low <= last else None


def _row_values(
    check: BufferCheck, scalars: Scalars, arrays: Mapping[str, CheckedArray]
) -> tuple[int, ...]:
    """Return the length of a row."""
    return arrays[check.buffer].shape[-1:] if check.test.is_in_rows else ()


def _distinct_values(
    check: BufferCheck, scalars: Scalars, arrays: Mapping[str, CheckedArray]
) -> tuple[int, ...]:
    """Return the least value and the span of the values, if these are marked in a list."""
    return check.marks or ()


def _known_element_values(
    check: BufferCheck, scalars: Scalars, arrays: Mapping[str, CheckedArray]
) -> tuple[int, ...]:
    """Return the position and the value of each known element."""
    sizes = [size for fact in check.values for size in (fact.index, fact.value)]
    return tuple(evaluate_size(size, scalars, arrays=_bound_arrays(arrays)) for size in sizes)


def _pad_values(
    check: BufferCheck, scalars: Scalars, arrays: Mapping[str, CheckedArray]
) -> tuple[int, ...] | None:
    """Return the value of padding; None if the dtype of the array cannot represent it."""
    if check.pad is None:
        return ()
    limits = np.iinfo(check.test.dtype)
    pad = evaluate_size(check.pad.length, scalars, arrays=_bound_arrays(arrays))
    return (pad,) if limits.min <= pad <= limits.max else None


def _bit_values(
    check: BufferCheck, scalars: Scalars, arrays: Mapping[str, CheckedArray]
) -> tuple[int, ...]:
    """Return the mask of the bits that are not below the length, as int64."""
    if check.bits is None:
        return ()
    length = evaluate_size(check.bits.length, scalars, arrays=_bound_arrays(arrays))
    is_partial = 0 <= length < 8 * np.dtype(check.test.dtype).itemsize
    return (-(1 << length) if is_partial else 0,)


_Arguments: TypeAlias = Callable[
    [BufferCheck, Scalars, Mapping[str, CheckedArray]], Union[tuple[int, ...], None]
]
_ARGUMENTS: tuple[_Arguments, ...] = (
    _range_values,
    _row_values,
    _distinct_values,
    _pad_values,
    _bit_values,
    _known_element_values,
)
"""The arguments of each property that a test can have, in the order of its parameters. A property that is
not tested has none."""


def _are_offsets_of(offsets: Array, size: int) -> bool:
    """Return whether offsets start at 0 and end at the size of an array."""
    flat = offsets.reshape(-1)
    return flat.size > 0 and (int(flat[0]), int(flat[-1])) == (0, size)


def _bound_arrays(arrays: Mapping[str, CheckedArray]) -> dict[str, Array]:
    """Return the arrays whose elements bounds may name."""
    return {name: array for name, array in arrays.items() if isinstance(array, np.ndarray)}
