"""Converts a storage to another format by the two descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from gossamer_formats.checks.storage_checks import require_one_buffer
from gossamer_formats.conversion.assembly import assemble
from gossamer_formats.conversion.conversion_options import Duplicates, Zeros
from gossamer_formats.conversion.conversion_target import ConversionTarget
from gossamer_formats.conversion.converted_storage import ConvertedStorage
from gossamer_formats.conversion.distinct import distinct
from gossamer_formats.conversion.dtypes import (
    WIDE,
    index_dtypes,
    limits_of,
    with_index_dtype,
)
from gossamer_formats.conversion.elements import (
    Elements,
    select_elements,
    sorted_elements,
    stored_elements,
)
from gossamer_formats.permutation import UNSTORED
from gossamer_formats.registry.compiler import find_compiler
from gossamer_formats.storage import (
    Array,
    Storage,
    axes_by_name,
    shape_of,
    values_handle,
    with_order,
    with_value_dtype,
)
from gossamer_ir.analysis.logical_elements import stores_only_elements
from gossamer_ir.core.axis_kinds import indices_of
from gossamer_ir.errors import FormatError
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.support.counted import counted

MIN_COMPILED = 2**17
"""The number of values from which programs are compiled: NumPy takes about as long as loading a program.
Those of earlier conversions between the same formats count, too."""


def convert_storage(
    source: Storage,
    target: ConversionTarget,
    *,
    duplicates: Duplicates = "sum",
    zeros: Zeros | None = None,
    index_dtype: str | None = None,
    wants_permutation: bool = True,
) -> ConvertedStorage:
    """Return a storage in another format.

    Compiled programs convert large storages, and small ones after many of the same formats, if distribution
    `gossamer` is installed; NumPy converts all others.
    `zeros=None` drops the zeros that fill dense axes, and keeps those that are stored one by one.
    `index_dtype=None` takes int32 if all indices fit.
    Raises `FormatError` if the target cannot hold the elements.

    >>> from gossamer_formats.descriptions.csr import csr
    >>> from gossamer_formats.descriptions.dia import dia
    >>> arrays = {"indptr": np.array([0, 1, 2]), "indices": np.array([1, 0]), "data": np.array([5.0, 6.0])}
    >>> source = Storage(csr("float64"), {"m": 2, "n": 2, "nnz": 2}, arrays)
    >>> found = convert_storage(source, ConversionTarget(dia()))
    >>> found.storage.arrays["offsets"], found.storage.values, found.permutation
    (array([-1,  1], dtype=int32), array([6., 0., 0., 5.]), array([ 1, -1, -1,  0]))
    """
    _require_rank(target.description, len(source.shape))
    require_one_buffer(target.description)
    _require_index_dtype(index_dtype)
    drop_zeros = zeros == "drop" or (zeros is None and not stores_only_elements(source.description))
    compile = find_compiler() if _is_worth_compiling(source, target) else None
    if compile is not None:
        # These modules need the parser, which takes a third of the time to import this package.
        from gossamer_formats.conversion.compiled.assemble import Options
        from gossamer_formats.conversion.compiled.convert import convert_compiled

        options = Options(drop_zeros, index_dtype, wants_permutation)
        found = convert_compiled(source, target, compile, options)
        if found is not None:
            _require_shape(found.storage, source)
            return found
    elements = stored_elements(source)
    if drop_zeros:
        elements = select_elements(elements, np.flatnonzero(source.values[elements.positions]))
    elements = sorted_elements(elements)
    return store_elements(
        source,
        elements,
        target,
        duplicates=duplicates,
        index_dtype=index_dtype,
    )


class _Usage:
    """The number of values that were converted between two formats."""

    def __init__(self) -> None:
        self.values = 0


@lru_cache(maxsize=256)
def _usage(source: FormatDescription, target: FormatDescription) -> _Usage:
    """Return the record of two formats; the least recently used ones are dropped."""
    return _Usage()


def _is_worth_compiling(source: Storage, target: ConversionTarget) -> bool:
    """Count a conversion, and return whether programs are worth their compilation by now.

    The time that NumPy takes before that is at most the time that was saved by not compiling sooner.
    """
    usage = _usage(source.description, target.description)
    # Two threads may count at once; a conversion that is not counted changes nothing.
    usage.values += source.values.size
    return usage.values >= MIN_COMPILED


def store_elements(
    source: Storage,
    elements: Elements,
    target: ConversionTarget,
    *,
    duplicates: Duplicates = "sum",
    index_dtype: str | None = None,
) -> ConvertedStorage:
    """Return a storage with elements of a source, which are sorted by their coordinates.

    The other arguments are those of `convert_storage`.
    """
    values = source.values[elements.positions]
    repeats = distinct(elements.coordinates).firsts.size < values.size
    is_sum = repeats and duplicates == "sum"
    if repeats:
        elements, values = _merged(elements, values, duplicates)
    if repeats and duplicates == "keep":
        target = target._replace(description=_with_repetitions(target.description))
    found = assemble(target, elements.coordinates, source.shape)
    permutation = np.full(found.value_count, UNSTORED)
    permutation[found.positions] = elements.positions
    stored = np.zeros(found.value_count, values.dtype)
    stored[found.positions] = values
    described = with_index_dtype(
        target.description, index_dtype or _narrowest_dtype(target.description, found.arrays)
    )
    described = with_value_dtype(described, values.dtype.name)
    dtypes = index_dtypes(described)
    arrays = {
        handle: _narrowed(array, handle, dtypes[handle]) for handle, array in found.arrays.items()
    }
    storage = Storage(described, found.sizes, {**arrays, values_handle(described): stored})
    _require_shape(storage, source)
    return ConvertedStorage(storage, None if is_sum else permutation)


def _merged(elements: Elements, values: Array, duplicates: Duplicates) -> tuple[Elements, Array]:
    """Return elements, of which some are duplicates, and their values after these were treated."""
    if duplicates == "keep":
        return elements, values
    tuples = distinct(elements.coordinates)
    if duplicates == "error":
        repeated = int(np.argmax(tuples.numbers[1:] == tuples.numbers[:-1]))
        at = ", ".join(str(array[repeated]) for array in elements.coordinates)
        raise FormatError(
            "format.duplicate",
            f"The element ({at}) is stored more than once; expected each element once.",
            hint="Use duplicates='sum'.",
        )
    return select_elements(elements, tuples.firsts), np.add.reduceat(values, tuples.firsts)


def _with_repetitions(description: FormatDescription) -> FormatDescription:
    """Return the description with repeated coordinates along its innermost axis.

    Raises `FormatError` (`format.duplicate`) if that axis stores no coordinates.
    """
    name = description.buffer.axes[-1]
    innermost = indices_of(axes_by_name(description)[name])
    is_mask = innermost is not None and innermost.is_mask
    if is_mask or not stores_only_elements(description):
        raise FormatError(
            "format.duplicate",
            f"The format '{description.name}' has one place for each element, so duplicates cannot be kept.",
            hint="Use duplicates='sum'.",
        )
    return with_order(description, unique=False, axes=(name,))


def _narrowed(array: Array, handle: str, dtype: str) -> Array:
    least, most = limits_of(dtype)
    for value in (int(array.min(initial=0)), int(array.max(initial=0))):
        if not least <= value <= most:
            raise FormatError(
                "format.index_dtype",
                f"{handle} would contain {value}, which {dtype} cannot represent.",
            )
    return array.astype(dtype)


def _require_index_dtype(dtype: str | None) -> None:
    if dtype not in (None, *WIDE):
        raise FormatError(
            "format.index_dtype",
            f"The dtype of indices is {dtype!r}; expected {' or '.join(WIDE)}.",
        )


def _narrowest_dtype(description: FormatDescription, arrays: Mapping[str, Array]) -> str:
    """Return the dtype for the index arrays for which a tensor chooses one."""
    (least, most), declared = limits_of("int32"), index_dtypes(description)
    fits = all(
        least <= array.min(initial=0) and array.max(initial=0) <= most
        for handle, array in arrays.items()
        if declared[handle] in WIDE
    )
    return "int32" if fits else "int64"


def _require_rank(target: FormatDescription, rank: int) -> None:
    if len(shape_of(target)) != rank:
        raise FormatError(
            "format.dimensions",
            f"The tensor has {counted(rank, 'dimension')}, but the format '{target.name}' has "
            f"{len(shape_of(target))}.",
        )


def _require_shape(storage: Storage, source: Storage) -> None:
    if storage.shape != source.shape:
        raise FormatError(
            "format.shape",
            f"The format '{storage.description.name}' has the shape {storage.shape} with these sizes; "
            f"expected {source.shape}.",
        )
