"""Builds the storage of a tensor in another format by programs that loop over its elements.

The axes of the target are built from the outermost to the innermost, as in `conversion.assembly`. What an
axis needs to know about all elements (how many a fiber has, which coordinates occur) is found by a program of
its own; the last program stores indices and values. The statements of an axis bind `t_AXIS`, the number of
the element's slot, and the programs of the axes after it repeat them.

The queries are those of Chou, Kjolstad and Amarasinghe, "Automatic generation of efficient sparse tensor
format conversion routines" (PLDI 2020).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gossamer_formats.conversion.compiled.assembly_state import (
    Appended,
    AssemblyState,
    NotDirectError,
    Store,
    UnsortedFibersError,
    offsets_of_ends,
)
from gossamer_formats.conversion.compiled.compressed_axes import add_compressed
from gossamer_formats.conversion.compiled.coordinates import set_coordinates
from gossamer_formats.conversion.compiled.dense_axes import add_fixed, add_ragged
from gossamer_formats.conversion.compiled.element_loop import VALUES, ElementLoop, element_loop
from gossamer_formats.conversion.compiled.element_order import (
    ElementOrder,
    declared_order,
    is_unordered_list,
    needs_order,
    observed_order,
    order_of_loop,
)
from gossamer_formats.conversion.compiled.hoisted import hoisted
from gossamer_formats.conversion.compiled.loop_order import layout_sizes
from gossamer_formats.conversion.compiled.program import (
    Compile,
    Operand,
    indented,
    run_program,
)
from gossamer_formats.conversion.compiled.slot_axes import add_slots
from gossamer_formats.conversion.compiled.sorted_slots import sorted_slots
from gossamer_formats.conversion.compiled.vector_runs import vector_run
from gossamer_formats.conversion.conversion_target import ConversionTarget
from gossamer_formats.conversion.converted_storage import ConvertedStorage
from gossamer_formats.conversion.dtypes import (
    index_dtypes,
    limits_of,
    native_index_dtype,
    with_index_dtype,
)
from gossamer_formats.memory.new_arrays import NewArray, new_arrays, without_end
from gossamer_formats.memory.ownership import is_owned
from gossamer_formats.permutation import UNSTORED
from gossamer_formats.storage import (
    Array,
    Storage,
    ancestors,
    native_name,
    require_nested_axes,
    shape_of,
    values_handle,
    with_value_dtype,
)
from gossamer_ir.core.axis_kinds import indices_of, indptr_of, is_full, width_of
from gossamer_ir.core.build import integer_value
from gossamer_ir.nodes import Axis, FormatDescription

PERMUTATION = "0"
"""The key of the permutation among the arrays that are stored; no handle has this name."""


class Options(NamedTuple):
    """What is wanted: `drop_zeros` leaves out elements whose value is zero; `requires_order` refuses elements
    that are not sorted as the target says; `index_dtype=None` is int32; `in_one_program` refuses storages
    that need several programs."""

    drop_zeros: bool
    index_dtype: str | None
    wants_permutation: bool
    requires_order: bool = True
    in_one_program: bool = False


def assemble_compiled(
    source: Storage, target: ConversionTarget, compile: Compile, options: Options
) -> ConvertedStorage:
    """Return the storage.

    Raises `NotDirectError` if it cannot be built from the elements in their order.
    """
    drop_zeros, description = options.drop_zeros, source.description
    layout = layout_sizes(description, source.sizes)
    are_distinct = declared_order(description, layout, description.buffer.axes).are_distinct
    in_storage_order = are_distinct and is_unordered_list(target.description)
    loop = element_loop(source, drop_zeros=drop_zeros, in_storage_order=in_storage_order)
    order = order_of_loop(loop, source)
    if options.requires_order and not order.are_distinct:
        order = observed_order(order, loop, compile)
    try:
        return _assembled(source, loop, order, target, compile, options)
    except UnsortedFibersError:
        slots = sorted_slots(source, compile)
    loop = element_loop(source, drop_zeros=drop_zeros, sorted_slots=slots)
    order = order_of_loop(loop, source, are_sorted=True)
    return _assembled(source, loop, order, target, compile, options)


def _assembled(
    source: Storage,
    loop: ElementLoop,
    order: ElementOrder,
    target: ConversionTarget,
    compile: Compile,
    options: Options,
) -> ConvertedStorage:
    # Distinct elements may be stored in their order if the target has any.
    requires_order = options.requires_order and (
        not order.are_distinct or needs_order(target.description)
    )
    state = AssemblyState(source, loop, target, compile, requires_order, order)
    state.in_one_program = options.in_one_program
    _add_axes(state)
    return _finish(state, options)


def _add_axes(state: AssemblyState) -> None:
    """Build all index arrays that do not depend on single elements, and the statements for the others."""
    require_nested_axes(state.description)
    for expr, size in zip(shape_of(state.description), state.shape, strict=True):
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
        length = state.sizes.value(axis.length)
        add_fixed(state, axis, state.coordinates[axis.name], length, state.length(axis))


def _finish(state: AssemblyState, options: Options) -> ConvertedStorage:
    """Store indices and values, and return the storage."""
    if not state.in_own_slot and not state.order.are_distinct:
        raise NotDirectError("elements may be repeated", needs_order=True)
    described = _typed(state, options.index_dtype)
    dtypes, handle = index_dtypes(described), values_handle(described)
    arrays = _known_arrays(state, dtypes)
    position, extra = state.position, state.description.buffer.extra_storage
    slots = position.slots + extra
    size = f"{position.size} + {extra}" if extra else position.size
    is_filled = state.fills_slots and not extra
    shares_values = state.in_order and is_owned(state.source.values)
    stores = [store for store in state.stores if store.handle not in arrays]
    new = [
        NewArray(state.places[store.axis].slots, dtypes[store.handle], is_zero=False)
        for store in stores
    ]
    if not shares_values:
        new.append(NewArray(slots, native_name(state.source.values.dtype), is_zero=not is_filled))
    made = new_arrays(new)
    values = state.source.values if shares_values else made.pop()
    found: dict[str, Operand] = {}
    statements: list[str] = []
    for store, array in zip(stores, made, strict=True):
        place = state.places[store.axis]
        if store.unused is not None:
            array.fill(store.unused)
        found[store.handle] = Operand(array, place.size)
        coordinate = f"T.{native_name(array.dtype)}({state.coordinates[store.axis]})"
        statements.append(f"T_{store.handle}[{place.text}] = {coordinate}")
    if not shares_values:
        state.arguments[VALUES] = Operand(state.source.values, state.loop.value_shape)
        found[handle] = Operand(values, size)
        statements.append(f"T_{handle}[{position.text}] = {state.loop.value}")
    permutation = None
    if options.wants_permutation and state.in_order:
        permutation = np.arange(slots)
    elif options.wants_permutation:
        permutation = np.empty(slots, np.int64)
        if not is_filled:
            permutation.fill(UNSTORED)
        found[PERMUTATION] = Operand(permutation, size)
        statements.append(f"T_{PERMUTATION}[{position.text}] = p")
    stored = {f"T_{name}": operand for name, operand in found.items()}
    if state.appended is not None:
        total = _run_appending(state, state.appended, statements, stored)
        found = {
            name: operand._replace(array=without_end(operand.array, total))
            for name, operand in found.items()
        }
        arrays |= _known_arrays(state, dtypes)
    elif statements:
        state.query(statements, stored)
    if PERMUTATION in found:
        permutation = found.pop(PERMUTATION).array
    arrays |= {name: operand.array for name, operand in found.items()}
    arrays.setdefault(handle, values)
    return ConvertedStorage(Storage(described, state.sizes.known, arrays), permutation)


def _known_arrays(state: AssemblyState, dtypes: Mapping[str, str]) -> dict[str, Array]:
    """Return the index arrays that are complete, and those of the source that the target shares."""
    arrays = {
        handle: array.astype(dtypes[handle], copy=False) for handle, array in state.arrays.items()
    }
    for store in state.stores:
        shared = _shared(state, store, dtypes[store.handle])
        if shared is not None:
            arrays[store.handle] = shared
    return arrays


def _run_appending(
    state: AssemblyState,
    appended: Appended,
    statements: Sequence[str],
    stored: Mapping[str, Operand],
) -> int:
    """Run the last program, which appends elements to an axis, and return how many there are."""
    axis, indptr, parent = appended
    totals = np.zeros(1, np.int64)
    found: dict[str, Array | Operand | int] = {**stored, "TOTALS": Operand(totals, "1")}
    ends = np.zeros(parent.slots, native_index_dtype(state.source.values.size))
    if indptr is not None:
        found["ENDS"] = Operand(ends, parent.size)
    end = f"ENDS[{parent.text}] = T.{native_name(ends.dtype)}(TOTAL[0])"
    after = []
    if indptr is not None and all(
        is_full(state.axes[name]) for name in ancestors(state.axes, axis.name)
    ):
        # Fibers of dense axes are there without elements, too.
        after = [hoisted(state.loop, state.statements, end)]
    elif indptr is not None:
        after = indented([end], state.loop.depth)
    lines = [
        *state.starts,
        'TOTAL = T.alloc_buffer((1,), "int64", scope="local")',
        "TOTAL[0] = 0",
        *(
            _appended_in_vectors(state, axis, statements, after)
            or _appended_one_by_one(state, axis, statements, after)
        ),
        "TOTALS[0] = TOTAL[0]",
    ]
    run_program(state.compile, lines, {**state.arguments, **found})
    total = int(totals[0])
    if indptr is None:
        state.sizes.bind(width_of(axis), total)
    else:
        state.set_offsets(indptr, offsets_of_ends(ends))
    return total


def _appended_one_by_one(
    state: AssemblyState, axis: Axis, statements: Sequence[str], after: Sequence[str]
) -> list[str]:
    """Return the loops that append elements, with lines `after` inner ones."""
    condition, slot = state.loop.condition, f"slot_{axis.name}"
    body = [*state.statements, f"{slot} = TOTAL[0]", *statements]
    if condition is None or state.loop.solved is not None:
        # Most slots of a diagonal have no element: the branch is predicted, and nothing is stored for them.
        return [*state.loop.around([*body, f"TOTAL[0] = {slot} + 1"]), *after]
    # Without a branch: an element that is not wanted is overwritten by the next one.
    advance = f"TOTAL[0] = {slot} + T.select({condition}, 1, 0)"
    return [*state.loop.around_all([*body, advance]), *after]


def _appended_in_vectors(
    state: AssemblyState, axis: Axis, statements: Sequence[str], after: Sequence[str]
) -> list[str] | None:
    """Return the loops that append several elements at once, with lines `after` inner ones; None unless these
    elements are always in one fiber."""
    run = vector_run(state.loop, state.statements)
    if run is None or any(line.startswith(indented([""], run.depth + 1)[0]) for line in after):
        return None
    first = f"first_{axis.name}"
    # Sums instead of their names: the bounds of a sum with the variable are checked before the loop.
    texts = {f"slot_{axis.name}": f"{first} + {run.variable}", "p": run.position}
    names = re.compile(r"\b(" + "|".join(texts) + r")\b")
    stores = [names.sub(lambda name: texts[name[0]], statement) for statement in statements]
    advance = f"TOTAL[0] = {first} + {run.width}"
    return [*run.around([f"{first} = TOTAL[0]"], stores, [advance]), *after]


def _shared(state: AssemblyState, store: Store, dtype: str) -> Array | None:
    """Return the array of the source that has the coordinates, if there is one."""
    array = state.loop.loaded.get(state.logical.get(store.axis, -1))
    is_same = state.in_order and array is not None and native_name(array.dtype) == dtype
    return array if is_same and array is not None and is_owned(array) else None


def _typed(state: AssemblyState, index_dtype: str | None) -> FormatDescription:
    """Return the description with the dtypes of the arrays."""
    bounds = {
        handle: (int(array.min(initial=0)), int(array.max(initial=0)))
        for handle, array in state.arrays.items()
        if handle not in state.bounds
    } | state.bounds
    for store in state.stores:
        bounds[store.handle] = 0, store.most
    if state.appended is not None and state.appended.indptr is not None:
        bounds[state.appended.indptr.handle] = 0, state.source.values.size
    described = with_index_dtype(state.description, index_dtype or "int32")
    for handle, dtype in index_dtypes(described).items():
        (least, most), (lowest, highest) = limits_of(dtype), bounds[handle]
        if not least <= lowest <= highest <= most:
            raise NotDirectError(f"{dtype} may not represent the indices")
    return with_value_dtype(described, native_name(state.source.values.dtype))
