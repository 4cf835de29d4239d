"""The last kernel of a conversion: it stores coordinates, values and their permutation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import add as plus
from typing import NamedTuple

import numpy as np

from gossamer_formats.conversion.by_kernels.build_state.axis_queries import coordinate_along
from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState
from gossamer_formats.conversion.by_kernels.build_state.built_storage import BuiltStorage
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import AxisSlot, LaterSlot
from gossamer_formats.conversion.by_kernels.build_state.run_query import run_query
from gossamer_formats.conversion.by_kernels.kernel_options import KernelOptions
from gossamer_formats.conversion.by_kernels.kernels.kernel_call import ArrayArgument
from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import Size
from gossamer_formats.conversion.by_kernels.kernels.statements import cast, let, when
from gossamer_formats.conversion.by_kernels.recording.array_scalars import size_of
from gossamer_formats.conversion.by_kernels.recording.branch import RecordedValue
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_formats.conversion.by_kernels.recording.recorded_storage import (
    RecordedConversion,
    RecordedStorage,
    is_shareable,
)
from gossamer_formats.conversion.by_kernels.results.append_elements import append_elements
from gossamer_formats.conversion.by_kernels.results.new_storage import (
    WantedArray,
    allocate,
    complete_arrays,
    shared_arrays,
    typed_description,
)
from gossamer_formats.conversion.by_kernels.results.separate_stores import (
    SLOT,
    find_slots,
    is_separable,
    run_stores,
)
from gossamer_formats.conversion.by_kernels.source.element_loop import VALUE_INDEX
from gossamer_formats.conversion.destination.dtypes import index_dtypes
from gossamer_formats.memory.new_arrays import without_end
from gossamer_formats.permutation import UNSTORED
from gossamer_formats.storage import values_handle
from gossamer_ir.core.build import add, index, index_var
from gossamer_ir.nodes import Expr, FormatDescription, Prefetch, Stmt, Store

PERMUTATION = "0_permutation"
"""The key of the permutation among the arrays that are stored; no handle begins with a digit."""


class _ArrayStore(NamedTuple):
    """A new array, and what is stored for each element in which slot."""

    wanted: WantedArray
    into: AxisSlot
    value: Expr


def run_last_kernel(state: BuildState, options: KernelOptions) -> RecordedConversion:
    """Store indices and values, and return the storage."""
    # Each value is stored without reading its slot: of repeated elements, one would be kept.
    if not state.storage.slots.are_own and not state.order.are_distinct:
        raise NotDirectError("elements may be repeated", needs_order=True)
    described = typed_description(state, options.index_dtype)
    dtypes, handle = index_dtypes(described), values_handle(described)
    results = shared_arrays(state, dtypes) | _shared_results(state, handle, options)
    stores = _coordinate_stores(state, dtypes) | _value_stores(state, described, options)
    made, complete = _run(
        state,
        {name: array_store for name, array_store in stores.items() if name not in results},
    )
    results |= made | complete_arrays(state.recorder, complete.arrays, dtypes)
    permutation = results.pop(PERMUTATION, None)
    count = state.recorder.compute(size_of, results[handle])
    sizes = state.sizes.known
    storage = RecordedStorage(described, sizes, results, count, are_new=True)
    return RecordedConversion(storage, {**sizes, **complete.slot_counts}, permutation)


def _shared_results(
    state: BuildState, handle: str, options: KernelOptions
) -> dict[str, RecordedValue]:
    """Return what follows without a kernel if the slots are those of the source."""
    if not state.storage.slots.are_of_source:
        return {}
    shared = {}
    if is_shareable(state.recorder, state.source, state.source.values):
        shared[handle] = state.source.values
    if options.wants_permutation:
        shared[PERMUTATION] = state.recorder.compute(np.arange, state.source.value_count)
    return shared


def _coordinate_stores(state: BuildState, dtypes: Mapping[str, str]) -> dict[str, _ArrayStore]:
    stores = {}
    for stored in state.storage.stored:
        dtype, slot = dtypes[stored.handle], state.axis_slots[stored.axis]
        wanted = WantedArray(slot.size.value, dtype, stored.unused)
        coordinate = cast(coordinate_along(state, stored.axis), dtype)
        stores[stored.handle] = _ArrayStore(wanted, slot, coordinate)
    return stores


def _value_stores(
    state: BuildState, described: FormatDescription, options: KernelOptions
) -> dict[str, _ArrayStore]:
    """Return what is stored in the arrays of values and of their indices in the source."""
    extra, slot = described.buffer.extra_storage, state.value_slot
    is_filled = state.storage.slots.are_filled and not extra
    if extra:
        count = state.recorder.compute(plus, slot.size.value, extra)
        slot = AxisSlot(slot.slot, Size(add(slot.size.expr, index(extra)), count))
    size = slot.size.value
    values = WantedArray(size, described.buffer.dtype, None if is_filled else 0)
    stores = {values_handle(described): _ArrayStore(values, slot, state.loop.value)}
    if options.wants_permutation:
        permutation = WantedArray(size, "int64", None if is_filled else UNSTORED)
        stores[PERMUTATION] = _ArrayStore(permutation, slot, VALUE_INDEX)
    return stores


def _prefetches(later: LaterSlot | None, arrays: Sequence[str]) -> list[Stmt]:
    """Return the statements that fetch the lines of arrays in which a later element will be stored."""
    if later is None:
        return []
    slot = index_var("later")
    hints = [Prefetch(name, (slot,)) for name in arrays]
    return [when(later.condition, [let(slot.name, later.slot), *hints])]


def _run(
    state: BuildState, stores: Mapping[str, _ArrayStore]
) -> tuple[dict[str, RecordedValue], BuiltStorage]:
    """Run the kernel, and return the new arrays, and the storage with the slots that the kernel counts."""
    if not stores:
        return {}, state.storage
    made = allocate(
        state.recorder,
        {name: array_store.wanted for name, array_store in stores.items()},
    )
    arguments = {
        f"T_{name}": ArrayArgument(
            made[name], array_store.wanted.dtype, (array_store.into.size.expr,)
        )
        for name, array_store in stores.items()
    }
    appended = state.storage.slots.appended
    if appended is None:
        _store(state, [*stores.values()], arguments)
        return made, state.storage
    stmts = _stmts(stores.values(), arguments)
    total, counted = append_elements(state, appended, stores=stmts, arguments=arguments)
    used = {name: state.recorder.compute(without_end, array, total) for name, array in made.items()}
    return used, state.storage.extend(counted)


def _store(
    state: BuildState,
    stores: Sequence[_ArrayStore],
    arguments: Mapping[str, ArrayArgument],
) -> None:
    """Run the kernel that stores in slots that are known, or are found by a kernel of their own first."""
    slots, values = (
        [array_store.into for array_store in stores],
        [array_store.value for array_store in stores],
    )
    if not is_separable(state, slots, values):
        prefetches = _prefetches(state.elements.later, [*arguments])
        run_query(state, [*prefetches, *_stmts(stores, arguments)], arguments)
        return
    listed_slots = find_slots(state, slots[0])
    in_slots = [
        array_store._replace(into=array_store.into._replace(slot=SLOT)) for array_store in stores
    ]
    stmts = [*_prefetches(listed_slots.later, [*arguments]), *_stmts(in_slots, arguments)]
    run_stores(state, listed_slots.array, stmts, arguments)


def _stmts(stores: Iterable[_ArrayStore], arrays: Iterable[str]) -> list[Stmt]:
    return [
        Store(name, (array_store.into.slot,), array_store.value)
        for name, array_store in zip(arrays, stores, strict=True)
    ]
