"""The storage of elements that are sorted."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace

from gossamer_formats.axis_order import with_order
from gossamer_formats.checks.array_checks import INDEX_DTYPES
from gossamer_formats.conversion.by_numpy.assembly import Assembly, assemble
from gossamer_formats.conversion.by_numpy.distinct import distinct
from gossamer_formats.conversion.by_numpy.stored_elements import Elements, select_elements
from gossamer_formats.conversion.destination.conversion_destination import Destination
from gossamer_formats.conversion.destination.conversion_options import ConversionOptions, Duplicates
from gossamer_formats.conversion.destination.converted_storage import (
    ConvertedStorage,
    require_same_shape,
)
from gossamer_formats.conversion.destination.dtypes import index_dtypes, limits_of, with_index_dtype
from gossamer_formats.memory.available_memory import require_memory
from gossamer_formats.permutation import UNSTORED
from gossamer_formats.storage import Storage, values_handle, with_value_dtype
from gossamer_ir.analysis.axes.logical_elements import stores_only_elements
from gossamer_ir.core.axis_kinds import indices_of
from gossamer_ir.errors import FormatError
from gossamer_ir.nodes import FormatDescription
from gossamer_support.arrays import Array
from gossamer_support.items_by_name import items_by_name


def store_elements(
    source: Storage,
    elements: Elements,
    destination: Destination,
    *,
    options: ConversionOptions,
    drops_zeros: bool = False,
) -> ConvertedStorage:
    """Return a storage with elements of a source, which are sorted by their coordinates.

    `drops_zeros` leaves out sums of duplicates that are zero.
    """
    values = source.values[elements.value_indices]
    repeats = distinct(elements.coordinates).firsts.size < values.size
    is_sum = repeats and options.duplicates == "sum"
    if repeats:
        elements, values = _merge_duplicates(elements, values, options.duplicates)
    if is_sum and drops_zeros:
        others = np.flatnonzero(values)
        elements, values = select_elements(elements, others), values[others]
    # Without what was derived from the description that declares no repetitions.
    if repeats and options.duplicates == "keep":
        destination = replace(
            destination, description=_with_repetitions(destination.description), memo={}
        )
    assembly = assemble(destination, elements.coordinates, source.shape)
    storage = _storage_of(
        assembly, destination.description, values, index_dtype=options.index_dtype
    )
    require_same_shape(storage, source)
    if is_sum:
        return ConvertedStorage(storage, None)
    permutation = np.full(assembly.value_count, UNSTORED)
    permutation[assembly.value_indices] = elements.value_indices
    return ConvertedStorage(storage, permutation)


def _storage_of(
    assembly: Assembly, description: FormatDescription, values: Array, *, index_dtype: str | None
) -> Storage:
    """Return the storage of arrays, in the dtypes of the values and of the indices (None: the narrowest)."""
    require_memory(assembly.value_count * values.itemsize)
    stored = np.zeros(assembly.value_count, values.dtype)
    stored[assembly.value_indices] = values
    described = with_index_dtype(
        description, index_dtype or _narrowest_dtype(description, assembly.arrays)
    )
    described = with_value_dtype(described, values.dtype.name)
    dtypes = index_dtypes(described)
    arrays = {
        handle: _narrow(array, handle, dtypes[handle]) for handle, array in assembly.arrays.items()
    }
    return Storage(described, assembly.sizes, {**arrays, values_handle(described): stored})


def _merge_duplicates(
    elements: Elements, values: Array, duplicates: Duplicates
) -> tuple[Elements, Array]:
    """Return elements, of which some are duplicates, and their values after these were treated."""
    if duplicates == "keep":
        return elements, values
    tuples = distinct(elements.coordinates)
    if duplicates == "error":
        repeated = int(np.argmax(tuples.ranks[1:] == tuples.ranks[:-1]))
        coordinates = ", ".join(str(array[repeated]) for array in elements.coordinates)
        raise FormatError(
            "format.duplicate",
            f"The element ({coordinates}) is stored more than once; expected each element once.",
            hint="Use duplicates='sum'.",
        )
    # NumPy would add small integers in int64.
    sums = np.add.reduceat(values, tuples.firsts, dtype=values.dtype)
    return select_elements(elements, tuples.firsts), sums


def _with_repetitions(description: FormatDescription) -> FormatDescription:
    """Return the description with repeated coordinates along its innermost axis.

    Raises `FormatError` (`format.duplicate`) if that axis stores no coordinates.
    """
    name = description.buffer.axes[-1]
    innermost = indices_of(items_by_name(description.axes)[name])
    is_mask = innermost is not None and innermost.is_mask
    if is_mask or not stores_only_elements(description):
        raise FormatError(
            "format.duplicate",
            f"The format '{description.name}' has one slot for each element, so duplicates cannot be kept.",
            hint="Use duplicates='sum'.",
        )
    return with_order(description, unique=False, axis_names=(name,))


def _narrow(array: Array, handle: str, dtype: str) -> Array:
    least, most = limits_of(dtype)
    for value in (int(array.min(initial=0)), int(array.max(initial=0))):
        if not least <= value <= most:
            raise FormatError(
                "format.index_dtype",
                f"{handle} would contain {value}, which {dtype} cannot represent.",
            )
    return array.astype(dtype)


def _narrowest_dtype(description: FormatDescription, arrays: Mapping[str, Array]) -> str:
    """Return the dtype for the index arrays for which a tensor chooses one."""
    (least, most), declared = limits_of("int32"), index_dtypes(description)
    fits = all(
        least <= array.min(initial=0) and array.max(initial=0) <= most
        for handle, array in arrays.items()
        if declared[handle] in INDEX_DTYPES
    )
    return "int32" if fits else "int64"
