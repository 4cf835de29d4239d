"""The arrays that the last kernel stores, and those that are complete before it or that the source has."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from gossamer_formats.conversion.by_kernels.build_state.axis_queries import logical_dimension
from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState
from gossamer_formats.conversion.by_kernels.build_state.built_storage import (
    IndexArray,
    StoredCoordinate,
)
from gossamer_formats.conversion.by_kernels.recording.branch import RecordedValue
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_formats.conversion.by_kernels.recording.recorded_storage import is_shareable
from gossamer_formats.conversion.by_kernels.recording.recorder import Recorder
from gossamer_formats.conversion.destination.dtypes import index_dtypes, limits_of, with_index_dtype
from gossamer_formats.memory.new_arrays import ArrayKind, new_arrays
from gossamer_formats.storage import with_value_dtype
from gossamer_ir.nodes import FormatDescription
from gossamer_support.arrays import Array


def typed_description(state: BuildState, index_dtype: str | None) -> FormatDescription:
    """Return the description with the dtypes of the arrays.

    Raises `NotDirectError` if indices may not fit.
    """
    described = with_index_dtype(state.description, index_dtype or "int32")
    dtypes = index_dtypes(described)
    fit = [stored.largest <= limits_of(dtypes[stored.handle])[1] for stored in state.storage.stored]
    fit += [
        _fits(state.recorder, array, dtypes[name]) for name, array in state.storage.arrays.items()
    ]
    appended = state.storage.slots.appended
    if appended is not None and appended.indptr is not None:
        dtype = dtypes[appended.indptr.handle]
        fit.append(state.recorder.decide(_is_at_most, state.source.value_count, dtype))
    if not all(fit):
        raise NotDirectError("the dtype of indices may not represent them")
    return with_value_dtype(described, state.source.description.buffer.dtype)


def _fits(recorder: Recorder, array: IndexArray, dtype: str) -> bool:
    if array.dtype == dtype:
        return True
    # The whole array is read only if nothing is known about its elements.
    if array.largest is None:
        return bool(recorder.decide(_is_within, array.array, dtype))
    return bool(recorder.decide(_is_at_most, array.largest, dtype))


def _is_at_most(value: int, dtype: str) -> bool:
    return value <= limits_of(dtype)[1]


def _is_within(array: Array, dtype: str) -> bool:
    least, most = limits_of(dtype)
    return bool(least <= array.min(initial=0) and array.max(initial=0) <= most)


def complete_arrays(
    recorder: Recorder, arrays: Mapping[str, IndexArray], dtypes: Mapping[str, str]
) -> dict[str, RecordedValue]:
    """Return the index arrays that are not made of what the last kernel stores for each element."""
    return {
        handle: array.array
        if array.dtype == dtypes[handle]
        else recorder.compute(np.ndarray.astype, array.array, dtypes[handle])
        for handle, array in arrays.items()
    }


def shared_arrays(state: BuildState, dtypes: Mapping[str, str]) -> dict[str, RecordedValue]:
    """Return the index arrays of the source that the destination shares."""
    by_handle = {}
    for stored in state.storage.stored:
        shared = _shared_array(state, stored, dtypes[stored.handle])
        if shared is not None:
            by_handle[stored.handle] = shared
    return by_handle


def _shared_array(state: BuildState, stored: StoredCoordinate, dtype: str) -> RecordedValue | None:
    """Return the array of the source that has the coordinates, if there is one."""
    source = state.source
    logical = logical_dimension(state, stored.axis)
    handle = None if logical is None else state.loop.loaded.get(logical)
    if handle is None or not state.storage.slots.are_of_source:
        return None
    if index_dtypes(source.description)[handle] != dtype:
        return None
    array = source.arrays[handle]
    return array if is_shareable(state.recorder, source, array) else None


class WantedArray(NamedTuple):
    """A new array: the number of its elements, its dtype, and what slots without an element hold; None
    if each slot has one."""

    size: int | RecordedValue
    dtype: str
    unused: int | None


def allocate(recorder: Recorder, wanted: Mapping[str, WantedArray]) -> dict[str, RecordedValue]:
    """Return new arrays by name."""
    if not wanted:
        return {}
    kinds = tuple(ArrayKind(array.dtype, array.unused == 0) for array in wanted.values())
    sizes = [array.size for array in wanted.values()]
    made = recorder.compute(new_arrays, kinds, *sizes)
    arrays = {
        name: recorder.compute(itemgetter(number), made) for number, name in enumerate(wanted)
    }
    for name, array in wanted.items():
        if array.unused:
            recorder.compute(np.ndarray.fill, arrays[name], array.unused)
    return arrays
