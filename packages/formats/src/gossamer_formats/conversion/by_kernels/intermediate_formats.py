"""Conversions in one pass, or by way of formats that sort the elements as the destination needs them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from gossamer_formats.checks.coordinate_order import without_order
from gossamer_formats.conversion.by_kernels.build_storage import build_storage
from gossamer_formats.conversion.by_kernels.kernel_options import KernelOptions
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_formats.conversion.by_kernels.recording.recorded_storage import (
    RecordedConversion,
    RecordedStorage,
    compose_value_indices,
)
from gossamer_formats.conversion.by_kernels.recording.recorder import Recorder
from gossamer_formats.conversion.by_kernels.repeated_elements import (
    declares_distinct_elements,
    elements_in_order,
    has_repeated_elements,
    with_sums,
)
from gossamer_formats.conversion.by_kernels.sorting_formats import (
    CSR,
    compressed_formats,
    sorting_formats,
)
from gossamer_formats.conversion.by_kernels.source.element_order import needs_order
from gossamer_formats.conversion.destination.conversion_destination import Destination
from gossamer_formats.description_sizes import shape_of
from gossamer_formats.descriptions.coo import coo


def record_conversion(
    recorder: Recorder,
    source: RecordedStorage,
    destination: Destination,
    options: KernelOptions,
    *,
    drop_sums: bool = False,
) -> RecordedConversion | None:
    """Return a storage in another format; None if this is left to NumPy: repeated elements that are kept, and
    whatever cannot be stored. `drop_sums` leaves out sums of repeated elements that are zero."""
    if options.drops_zeros:
        return _without_zeros(recorder, source, destination, options)
    try:
        with recorder.attempt():
            return build_storage(recorder, source, destination, options)
    except NotDirectError as error:
        if not error.needs_order:
            return None
    ndim = len(source.shape)
    if declares_distinct_elements(source):
        return _first_through(recorder, source, destination, options, by=sorting_formats(ndim))
    through_compressed = _first_through(
        recorder, source, destination, options, by=compressed_formats(ndim)
    )
    if through_compressed is not None:
        return through_compressed
    return _from_sorted(recorder, source, destination, options, drop_sums=drop_sums)


def _first_through(
    recorder: Recorder,
    source: RecordedStorage,
    destination: Destination,
    options: KernelOptions,
    *,
    by: Sequence[Sequence[Destination]],
) -> RecordedConversion | None:
    """Return the storage after conversions by way of the first formats that suit; None if none do."""
    for formats in by:
        try:
            with recorder.attempt():
                return _through(recorder, source, (*formats, destination), options)
        except NotDirectError:
            continue
    return None


def _through(
    recorder: Recorder,
    source: RecordedStorage,
    destinations: Sequence[Destination],
    options: KernelOptions,
) -> RecordedConversion:
    """Return the storage after several conversions."""
    first, *others = destinations
    first_options = options._replace(requires_order=not others or needs_order(first.description))
    if not others:
        return build_storage(recorder, source, first, first_options)
    before = build_storage(recorder, source, first, first_options._replace(index_dtype=None))
    after = _through(recorder, before.storage, others, options)
    return after._replace(permutation=compose_value_indices(recorder, before, after))


def _from_sorted(
    recorder: Recorder,
    source: RecordedStorage,
    destination: Destination,
    options: KernelOptions,
    *,
    drop_sums: bool,
) -> RecordedConversion | None:
    """Return the storage of elements in any order, which may be repeated: they are sorted and added first."""
    try:
        with recorder.attempt():
            in_order = elements_in_order(recorder, source, options)
    except NotDirectError:
        return None
    if not has_repeated_elements(recorder, in_order.storage, options):
        by = ((), *compressed_formats(len(source.shape)))
        after = _first_through(recorder, in_order.storage, destination, options, by=by)
        if after is None:
            return None
        return after._replace(permutation=compose_value_indices(recorder, in_order, after))
    if not options.adds_repeated:
        return None
    # A sum has several values of the source.
    sum_options = options._replace(drops_zeros=drop_sums, wants_permutation=False)
    return record_conversion(
        recorder, with_sums(recorder, in_order.storage), destination, sum_options
    )


def _without_zeros(
    recorder: Recorder, source: RecordedStorage, destination: Destination, options: KernelOptions
) -> RecordedConversion | None:
    """Return the storage without zeros. Unless one kernel can store it, the elements are collected first: so
    values are compared with zero once."""
    once = options._replace(needs_one_kernel=True)
    try:
        with recorder.attempt():
            return build_storage(recorder, source, destination, once)
    except NotDirectError:
        pass
    collected = _collect_nonzeros(recorder, source, once._replace(index_dtype=None))
    if collected is None:
        return None
    nonzero_options = options._replace(drops_zeros=False)
    after = record_conversion(
        recorder, collected.storage, destination, nonzero_options, drop_sums=True
    )
    if after is None:
        return None
    return after._replace(permutation=compose_value_indices(recorder, collected, after))


def _collect_nonzeros(
    recorder: Recorder, source: RecordedStorage, options: KernelOptions
) -> RecordedConversion | None:
    """Return the elements whose value is not zero, sorted if this takes one kernel."""
    for compact in (CSR, _collection(len(source.shape))):
        if len(source.shape) == len(shape_of(compact.description)):
            collection_options = options._replace(requires_order=compact is CSR)
            try:
                with recorder.attempt():
                    return build_storage(recorder, source, compact, collection_options)
            except NotDirectError:
                continue
    return None


@cache
def _collection(ndim: int) -> Destination:
    """Return the coordinates of elements, in any order."""
    return Destination(without_order(coo(ndim=ndim)))
