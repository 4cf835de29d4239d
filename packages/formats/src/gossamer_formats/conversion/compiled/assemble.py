"""Builds the storage of a tensor in another format by programs that loop over its elements.

The axes of the target are built from the outermost to the innermost, as in `conversion.assembly`. What an
axis needs to know about all elements (how many a fiber has, which coordinates occur) is found by a program of
its own; the last program stores indices and values. The statements of an axis bind `t_AXIS`, the number of
the element's slot, and the programs of the axes after it repeat them.

The queries are those of Chou, Kjolstad and Amarasinghe, "Automatic generation of efficient sparse tensor
format conversion routines" (PLDI 2020).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gossamer_formats.conversion.compiled.assembly_state import AssemblyState, NotDirectError, Store
from gossamer_formats.conversion.compiled.compressed_axes import add_compressed
from gossamer_formats.conversion.compiled.coordinates import set_coordinates
from gossamer_formats.conversion.compiled.dense_axes import add_fixed, add_ragged
from gossamer_formats.conversion.compiled.element_loop import VALUES, ElementLoop, element_loop
from gossamer_formats.conversion.compiled.element_order import (
    declares_order,
    digit_order,
    is_ascending,
)
from gossamer_formats.conversion.compiled.program import Compile
from gossamer_formats.conversion.compiled.slot_axes import add_slots
from gossamer_formats.conversion.conversion_target import ConversionTarget
from gossamer_formats.conversion.converted_storage import UNSTORED, ConvertedStorage
from gossamer_formats.conversion.dtypes import index_dtypes, with_index_dtype
from gossamer_formats.memory.ownership import is_owned
from gossamer_formats.storage import (
    Array,
    Storage,
    require_nested_axes,
    shape_of,
    values_handle,
    with_value_dtype,
)
from gossamer_ir.core.axis_kinds import indices_of, indptr_of
from gossamer_ir.core.build import integer_value
from gossamer_ir.nodes import Axis, FormatDescription


class Options(NamedTuple):
    """What is wanted: `drop_zeros` leaves out elements whose value is zero; `requires_order` refuses elements
    that are not sorted as the target says; `index_dtype=None` is int32."""

    drop_zeros: bool
    index_dtype: str | None
    wants_permutation: bool
    requires_order: bool = True


def assemble_compiled(
    source: Storage, target: ConversionTarget, compile: Compile, options: Options
) -> ConvertedStorage:
    """Return the storage.

    Raises `NotDirectError` if it cannot be built from the elements in their order.
    """
    loop = element_loop(source, drop_zeros=options.drop_zeros)
    order = _element_order(source, loop, compile, requires_order=options.requires_order)
    state = AssemblyState(source, loop, target, compile, options.requires_order, order)
    _add_axes(state)
    return _finish(state, options)


def _add_axes(state: AssemblyState) -> None:
    """Build all index arrays that do not depend on single elements, and the statements for the others."""
    require_nested_axes(state.description)
    for expr, size in zip(shape_of(state.description), state.source.shape, strict=True):
        state.sizes.bind(expr, size)
    set_coordinates(state)
    for name in state.description.buffer.axes:
        _add_axis(state, state.axes[name])


def _add_axis(state: AssemblyState, axis: Axis) -> None:
    indptr, indices = indptr_of(axis), indices_of(axis)
    parent = state.places[axis.parent]
    if axis.name not in state.coordinates and indices is None:
        if integer_value(axis.length) == 1 and indptr is None:
            state.coordinates[axis.name] = "0"
        else:
            add_slots(state, axis, indptr)
            return
    if indices is not None:
        add_compressed(state, axis, indptr, indices, parent)
    elif indptr is not None:
        add_ragged(state, axis, indptr, parent)
    else:
        add_fixed(state, axis, state.coordinates[axis.name], state.sizes.value(axis.length))


def _element_order(
    source: Storage, loop: ElementLoop, compile: Compile, *, requires_order: bool
) -> tuple[int, ...] | None:
    """Return the order of the elements, None if it is not known.

    Indices that need not be sorted are compared if the order is a lexicographic one.
    """
    order = digit_order(source.format, source.sizes)
    if order is None or declares_order(source.format) or not requires_order:
        return order
    is_lexicographic = len(set(order)) == len(order)
    return order if is_lexicographic and is_ascending(loop, order, compile) else None


def _finish(state: AssemblyState, options: Options) -> ConvertedStorage:
    """Store indices and values, and return the storage."""
    if not state.in_own_slot and state.order is None:
        raise NotDirectError("elements may be repeated", needs_order=True)
    described = _typed(state, options.index_dtype)
    stored: dict[str, Array | int] = {}
    statements: list[str] = []
    arrays = _index_arrays(state, index_dtypes(described), stored, statements)
    slots = state.position.slots + state.description.buffer.extra_storage
    permutation = None
    if options.wants_permutation and state.in_order:
        permutation = np.arange(slots)
    elif options.wants_permutation:
        permutation = stored["PERMUTATION"] = np.full(slots, UNSTORED, np.int64)
        statements.append(f"PERMUTATION[{state.position.text}] = p")
    values = state.source.values
    if not (state.in_order and is_owned(values)):
        state.arguments[VALUES] = values
        statements.append(f"T_values[{state.position.text}] = {VALUES}[p]")
        values = stored["T_values"] = np.zeros(slots, values.dtype)
    if statements:
        state.query(statements, stored)
    arrays[values_handle(described)] = values
    return ConvertedStorage(Storage(described, state.sizes.known, arrays), permutation)


def _index_arrays(
    state: AssemblyState,
    dtypes: Mapping[str, str],
    stored: dict[str, Array | int],
    statements: list[str],
) -> dict[str, Array]:
    """Return the index arrays. Adds those that the last program stores, and its statements for them."""
    arrays = {
        handle: array.astype(dtypes[handle], copy=False) for handle, array in state.arrays.items()
    }
    for store in state.stores:
        dtype, place = dtypes[store.handle], state.places[store.axis]
        shared = _shared(state, store, dtype)
        if shared is not None:
            arrays[store.handle] = shared
            continue
        array = np.empty(place.slots, dtype)
        if store.unused is not None:
            array.fill(store.unused)
        arrays[store.handle] = stored[f"T_{store.handle}"] = array
        coordinate = state.coordinates[store.axis]
        statements.append(f"T_{store.handle}[{place.text}] = T.{dtype}({coordinate})")
    return arrays


def _shared(state: AssemblyState, store: Store, dtype: str) -> Array | None:
    """Return the array of the source that has the coordinates, if there is one."""
    array = state.loop.loaded.get(state.logical.get(store.axis, -1))
    is_same = state.in_order and array is not None and array.dtype.name == dtype
    return array if is_same and array is not None and is_owned(array) else None


def _typed(state: AssemblyState, index_dtype: str | None) -> FormatDescription:
    """Return the description with the dtypes of the arrays."""
    highest = {handle: int(array.max(initial=0)) for handle, array in state.arrays.items()}
    lowest = {handle: int(array.min(initial=0)) for handle, array in state.arrays.items()}
    for store in state.stores:
        highest[store.handle], lowest[store.handle] = store.most, 0
    described = with_index_dtype(state.description, index_dtype or "int32")
    for handle, dtype in index_dtypes(described).items():
        limits = np.iinfo(dtype)
        if not limits.min <= lowest[handle] <= highest[handle] <= limits.max:
            raise NotDirectError(f"{dtype} may not represent the indices")
    return with_value_dtype(described, state.source.values.dtype.name)
