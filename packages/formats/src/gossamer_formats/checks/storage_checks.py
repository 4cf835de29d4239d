"""Checks that arrays form a valid tensor of a format. Each check reports the first violation.

Unsorted or duplicate columns are valid unless the description declares them sorted or unique.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from gossamer_formats.storage import (
    Array,
    Storage,
    element_count,
    evaluate,
    native_name,
    value_count,
    values_handle,
)
from gossamer_ir.analysis.axis_facts import facts_of_axis
from gossamer_ir.core.axis_kinds import Indices, Indptr, indices_of, indptr_of, is_varied, width_of
from gossamer_ir.errors import FormatError, UnsupportedError
from gossamer_ir.nodes import (
    Axis,
    Buffer,
    Distinct,
    Fact,
    FormatDescription,
    InRange,
    SortedSegments,
)
from gossamer_ir.support.counted import counted
from gossamer_ir.support.index_arrays import (
    FactChecker,
    Segments,
    first_decrease,
    first_outside,
    first_repeated,
    first_unsorted,
    first_wrong_word,
    segments_of,
)
from gossamer_ir.support.typed_calls import typed
from gossamer_ir.traversal.fact_index import stated_fact_index

INDEX_DTYPES = ("int32", "int64")
VALUE_DTYPES = ("float32", "float64")


@typed
def check_storage(storage: Storage, *, check: FactChecker | None = None) -> None:
    """Check all arrays of a tensor; raises a `FormatError` that names array, position and value.

    `check` is a fast check of the contents of index arrays. Where it returns False, NumPy checks them
    again to find the first violation.

    >>> from gossamer_formats import Storage, csr
    >>> arrays = {"indptr": np.array([0, 1]), "indices": np.array([4]), "data": np.ones(1)}
    >>> description = csr("float64", indptr_dtype="int64", indices_dtype="int64")
    >>> check_storage(Storage(description, {"m": 1, "n": 4, "nnz": 1}, arrays))
    Traceback (most recent call last):
    ...
    gossamer_ir.errors.FormatError: indices[0] is 4; expected a value from 0 to 3. [format.indices.range]
    """
    require_one_buffer(storage.description)
    for name, size in storage.sizes.items():
        if size < 0:
            raise FormatError("format.shape", f"The size {name} is {size}; expected 0 or more.")
    for axis in storage.description.axes:
        # All shapes before any contents: the checks of contents rely on them.
        _check_shapes(storage, axis)
    for array in storage.description.index_arrays:
        _check_map_array(storage, array)
    for array in storage.description.index_arrays:
        _check_declarations(storage, array)
    check_values(storage)
    facts = axis_facts(storage.description)
    if check is None or not check(facts, storage.sizes, storage.arrays):
        for axis in storage.description.axes:
            _check_contents(storage, axis)
    else:
        _check_uniqueness(storage)


def require_one_buffer(description: FormatDescription) -> None:
    """Refuse descriptions with several value buffers: a tensor has one."""
    if description.more_buffers:
        raise UnsupportedError(
            "format.value_buffers",
            f"The description '{description.name}' has several value buffers; expected one.",
            hint="Describe each tensor by itself; they may share index arrays.",
        )


@lru_cache(maxsize=64)
def axis_facts(description: FormatDescription) -> tuple[Fact, ...]:
    """Return the facts about index arrays that the axes of a description declare.

    The order within axes of fixed width is left out.

    >>> from gossamer_formats import csr
    >>> [type(fact).__name__ for fact in axis_facts(csr())]
    ['Monotone', 'InRange', 'SortedSegments']
    """
    promised = tuple(
        fact
        for axis in description.axes
        for fact in facts_of_axis(axis, name_of=lambda handle: handle)
    )
    segments = stated_fact_index(promised).of_type(SortedSegments)
    of_rows = {fact for fact in segments if fact.indptr is None}
    return tuple(fact for fact in promised if fact not in of_rows)


def check_values(storage: Storage) -> None:
    """Check dtype and length of the array of values."""
    name = values_handle(storage.description)
    values = storage.arrays[name]
    _require_vector(name, values)
    require_dtype(name, values, (storage.description.buffer.dtype,))
    _require_length(name, values, value_count(storage), reason="one value per nonzero")


@typed
def check_indptr(indptr: Array, *, segments: int, total: int, name: str = "indptr") -> None:
    """Check that `indptr` has segments + 1 elements, starts at 0, never decreases and ends at total.

    >>> check_indptr(np.array([0, 2, 1]), segments=2, total=1)
    Traceback (most recent call last):
    gossamer_ir.errors.FormatError: indptr[2] is 1, less than indptr[1] = 2; ...
    """
    _check_indptr_ends(indptr, segments=segments, total=total, name=name)
    decrease = first_decrease(indptr)
    if decrease is not None:
        _, at = decrease
        raise FormatError(
            "format.indptr.decreasing",
            f"{name}[{at}] is {indptr[at]}, less than {name}[{at - 1}] = {indptr[at - 1]}; "
            "expected values that never decrease.",
        )


def _check_indptr_ends(indptr: Array, *, segments: int, total: int, name: str) -> None:
    _require_vector(name, indptr)
    require_dtype(name, indptr, INDEX_DTYPES)
    _require_length(name, indptr, segments + 1, reason="one more than the rows")
    if indptr[0] != 0:
        raise FormatError("format.indptr.start", f"{name}[0] is {indptr[0]}; expected 0.")
    if indptr[-1] != total:
        raise FormatError(
            "format.indptr.end",
            f"{name}[{segments}] is {indptr[-1]}; expected {total}, the number of nonzeros.",
        )


@typed
def check_indices(
    indices: Array, *, length: int, count: int, is_padded: bool = False, name: str = "indices"
) -> None:
    """Check that `indices` has `count` elements, all in [0, length); padding has the value `length`.

    >>> check_indices(np.array([0, 5]), length=3, count=2)
    Traceback (most recent call last):
    gossamer_ir.errors.FormatError: indices[1] is 5; expected a value from 0 to 2. ...
    """
    _check_indices_shape(indices, count=count, name=name)
    _check_range(indices, length=length, is_padded=is_padded, name=name)


def _check_range(indices: Array, *, length: int, is_padded: bool, name: str) -> None:
    end = length + is_padded
    at = first_outside(indices, low=0, high=end)
    if at is None:
        return
    expected = f"a value from 0 to {end - 1}" if end else "none, since the length is 0"
    raise FormatError(
        "format.indices.range", f"{name}[{at}] is {indices[at]}; expected {expected}."
    )


def _check_indices_shape(
    indices: Array,
    *,
    count: int,
    name: str,
    dtypes: tuple[str, ...] = INDEX_DTYPES,
    reason: str = "one per nonzero",
) -> None:
    _require_vector(name, indices)
    require_dtype(name, indices, dtypes)
    _require_length(name, indices, count, reason=reason)


def _check_map_array(storage: Storage, array: Buffer) -> None:
    """Check an array that the map reads. Any contents are valid, unless a fact says more: what they map
    beyond the shape is unused."""
    name = array.handle or array.name
    stored = storage.arrays[name]
    _require_vector(name, stored)
    require_dtype(name, stored, (array.dtype,))
    count = prod(evaluate(size, storage.sizes) for size in array.shape)
    _require_length(name, stored, count, reason="the product of its dimensions")


def _check_declarations(storage: Storage, array: Buffer) -> None:
    """Check what the description declares of an index array of the map."""
    name, declared = array.handle or array.name, stated_fact_index(storage.description.facts)
    for interval in declared.about(array.name, InRange):
        _check_declared_range(storage, interval, name)
    if declared.holds(array.name, Distinct):
        _check_distinct(storage.arrays[name], name)


def _check_declared_range(storage: Storage, fact: InRange, name: str) -> None:
    low, high = (evaluate(bound, storage.sizes) for bound in (fact.low, fact.high))
    at = first_outside(storage.arrays[name], low=low, high=high)
    if at is not None:
        raise FormatError(
            "format.indices.range",
            f"{name}[{at}] is {storage.arrays[name][at]}; the description declares values from {low} to "
            f"{high - 1}.",
        )


def _check_distinct(stored: Array, name: str) -> None:
    repeated = first_repeated(stored)
    if repeated is not None:
        at, before = repeated
        raise FormatError(
            "format.indices.repeated",
            f"{name}[{at}] is {stored[at]}, as is {name}[{before}], but the description declares that the "
            "values are distinct.",
        )


def _check_shapes(storage: Storage, axis: Axis) -> None:
    """Check shapes, dtypes and the ends of `indptr`, in constant time per array."""
    indptr, indices = indptr_of(axis), indices_of(axis)
    if indptr is not None:
        offsets = storage.arrays[indptr.handle]
        require_dtype(indptr.handle, offsets, (indptr.dtype,))
        total = int(offsets[-1]) if indptr.nnz is None else evaluate(indptr.nnz, storage.sizes)
        parents = element_count(storage, indptr.parent)
        _check_indptr_ends(offsets, segments=parents, total=total, name=indptr.handle)
    if indices is not None:
        _check_indices_shape(
            storage.arrays[indices.handle],
            count=element_count(storage, axis.parent if indices.is_mask else axis.name),
            name=indices.handle,
            dtypes=(indices.dtype,),
            reason="one per fiber" if indices.is_mask else "one per nonzero",
        )


def _check_contents(storage: Storage, axis: Axis) -> None:
    """Check the elements of index arrays whose shapes have been checked."""
    # By axis rather than by the facts of `axis_facts`: errors name what to change in the axis, and no fact
    # expresses that unsorted coordinates are unique.
    indptr, indices = indptr_of(axis), indices_of(axis)
    if indptr is not None:
        offsets = storage.arrays[indptr.handle]
        segments, total = offsets.size - 1, int(offsets[-1])
        check_indptr(offsets, segments=segments, total=total, name=indptr.handle)
    if indptr is not None and indices is not None and indices.is_mask:
        _check_words(storage, axis, indptr, indices)
    elif indices is not None:
        coordinates = storage.arrays[indices.handle]
        _check_range(
            coordinates,
            length=evaluate(axis.length, storage.sizes),
            is_padded=indices.padded,
            name=indices.handle,
        )
        _check_order(storage, axis, indices)


def _check_words(storage: Storage, axis: Axis, indptr: Indptr, indices: Indices) -> None:
    """Check that as many bits are set in each word as its fiber has slots, all below the length."""
    words, offsets = storage.arrays[indices.handle], storage.arrays[indptr.handle]
    length = evaluate(axis.length, storage.sizes)
    at = first_wrong_word(words, offsets, length=length)
    if at is None:
        return
    word, slots = int(words[at]), int(offsets[at + 1]) - int(offsets[at])
    if word.bit_length() > length:
        reason = f"bit {word.bit_length() - 1} set; expected none from bit {length} on"
    else:
        reason = (
            f"{counted(word.bit_count(), 'bit')} set; expected {slots}, since {indptr.handle}[{at + 1}] "
            f"is {offsets[at + 1]} and {indptr.handle}[{at}] is {offsets[at]}"
        )
    raise FormatError("format.words", f"{indices.handle}[{at}] is {word:#b}, which has {reason}.")


def _check_uniqueness(storage: Storage) -> None:
    """Check the declarations about coordinates that `axis_facts` leaves out or that no fact expresses."""
    for axis in storage.description.axes:
        indices = indices_of(axis)
        if indices is not None and not (indices.sorted and is_varied(axis)):
            _check_order(storage, axis, indices)


def _check_order(storage: Storage, axis: Axis, indices: Indices) -> None:
    fibers = fibers_of(storage, axis, indices)
    name = indices.handle
    if indices.sorted:
        at = first_unsorted(fibers, unique=False)
        if at is not None:
            raise FormatError(
                "format.indices.unsorted",
                f"{name}[{at}] is {fibers.values[at]}, less than the one before it, but the description "
                "declares that the coordinates of each fiber are sorted.",
                hint="Use sorted=False in the description.",
            )
    if not indices.unique:
        return
    at = (
        first_unsorted(fibers, unique=True) if indices.sorted else first_repeated_coordinate(fibers)
    )
    if at is not None:
        raise FormatError(
            "format.indices.duplicate",
            f"{name}[{at}] is {fibers.values[at]}, which already occurs in this fiber, but the description "
            "declares unique coordinates.",
            hint="Use unique=False in the description.",
        )


def fibers_of(storage: Storage, axis: Axis, indices: Indices) -> Segments:
    """Return the coordinates of an axis, segment by segment."""
    coordinates = storage.arrays[indices.handle]
    pad = evaluate(axis.length, storage.sizes) if indices.padded else None
    indptr = indptr_of(axis)
    if indptr is not None:
        return segments_of(coordinates, storage.arrays[indptr.handle], pad=pad)
    width = evaluate(width_of(axis), storage.sizes)
    return segments_of(coordinates.reshape(-1, width) if width else coordinates, None, pad=pad)


def has_repeated(fibers: Segments) -> bool:
    """Return whether a coordinate occurs twice in a fiber, except for padding.

    >>> has_repeated(Segments(np.array([2, 0, 2]), np.array([0, 2, 3])))
    False
    """
    from scipy.sparse import csr_array  # takes 0.1 s to import

    # SciPy sorts within rows, about ten times as fast as a sort by fiber and coordinate.
    values, starts, pad = fibers
    shape = (starts.size - 1, int(values.max(initial=-1)) + 1)
    marks = np.zeros(values.size, dtype=np.int8)
    rows: Any = csr_array((marks, values.copy(), starts.copy()), shape=shape)
    rows.sort_indices()
    return first_unsorted(Segments(rows.indices, starts, pad), unique=True) is not None


def first_repeated_coordinate(fibers: Segments) -> int | None:
    """Return the first position whose coordinate occurs before in its fiber, or None."""
    if not has_repeated(fibers):
        return None
    starts = np.asarray(fibers.starts, np.int64)
    numbers = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    # Stable, so that of equal coordinates the first stays the first.
    order = np.lexsort((fibers.values, numbers))
    if fibers.pad is not None:
        order = order[fibers.values[order] != fibers.pad]
    values, numbers = fibers.values[order], numbers[order]
    repeated = (values[1:] == values[:-1]) & (numbers[1:] == numbers[:-1])
    return int(order[1:][repeated].min())


def _require_vector(name: str, array: Array) -> None:
    if array.ndim != 1:
        dimensions = counted(array.ndim, "dimension")
        raise FormatError("format.dimensions", f"{name} has {dimensions}; expected 1.")


def require_dtype(name: str, array: Array, allowed: tuple[str, ...]) -> None:
    """Raise a `FormatError` unless an array has one of the dtypes, in native byte order."""
    if native_name(array.dtype) in allowed:
        return
    raise FormatError(
        "format.dtype",
        f"{name} has the dtype {array.dtype}; expected {' or '.join(allowed)}.",
        hint=f"Convert it with {name}.astype({allowed[0]!r}).",
    )


def require_value_dtype(dtype: str) -> None:
    """Raise a `FormatError` unless values may have this dtype."""
    if dtype not in VALUE_DTYPES:
        raise FormatError(
            "format.dtype", f"The dtype is {dtype}; expected {' or '.join(VALUE_DTYPES)}."
        )


def _require_length(name: str, array: Array, length: int, *, reason: str) -> None:
    if array.size != length:
        raise FormatError(
            "format.length",
            f"{name} has {counted(array.size, 'element')}; expected {length}, {reason}.",
        )
