"""Converts storages by kernels: the recording of an earlier conversion of the same kind is replayed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from gossamer_formats.conversion.by_kernels.intermediate_formats import record_conversion
from gossamer_formats.conversion.by_kernels.kernel_options import KernelOptions
from gossamer_formats.conversion.by_kernels.recording.branch import (
    Branch,
    RecordedValue,
    UnrecordedError,
    merge,
    run_recording,
)
from gossamer_formats.conversion.by_kernels.recording.recorded_storage import (
    RecordedConversion,
    kind_sizes,
    recorded_source,
)
from gossamer_formats.conversion.by_kernels.recording.recorder import Recorder
from gossamer_formats.conversion.destination.conversion_destination import Destination
from gossamer_formats.conversion.destination.converted_storage import (
    ConvertedStorage,
    require_same_shape,
)
from gossamer_formats.registry.compiler import Compile
from gossamer_formats.storage import Storage
from gossamer_ir.nodes import FormatDescription
from gossamer_support.arrays import Array
from gossamer_support.bounded_dict import put_bounded

MAX_RECORDED = 256
"""The number of recordings that are kept for a destination."""


def convert_by_kernels(
    source: Storage, destination: Destination, compile: Compile, options: KernelOptions
) -> ConvertedStorage | None:
    """Return a checked storage in another format, whose arrays are new or those of the source; None if this
    is left to NumPy."""
    handles = tuple(source.arrays)
    key = (compile, source.description, kind_sizes(source), handles, options)
    recording: Branch | None = destination.memo.get(key)
    if recording is not None:
        try:
            replayed: ConvertedStorage | None = run_recording(recording, source.arrays.values())
            return replayed
        except UnrecordedError:
            pass
    return _record(source, destination, compile=compile, options=options, key=key)


def _record(
    source: Storage,
    destination: Destination,
    *,
    compile: Compile,
    options: KernelOptions,
    key: Hashable,
) -> ConvertedStorage | None:
    """Convert a storage, and record how."""
    inputs = list(source.arrays.values())
    recorder = Recorder(compile, inputs)
    converted = record_conversion(recorder, recorded_source(recorder, source), destination, options)
    result = None if converted is None else _result(recorder, converted)
    stored: ConvertedStorage | None = recorder.value(result)
    if stored is not None:
        require_same_shape(stored.storage, source)
    recording, existing = recorder.finish(result), destination.memo.get(key)
    if existing is None:
        put_bounded(destination.memo, key, recording, limit=MAX_RECORDED)
    else:
        merge(existing, recording)
    return stored


class _Layout(NamedTuple):
    """The description of a storage, the names of its sizes and the handles of its arrays."""

    description: FormatDescription
    sizes: tuple[str, ...]
    handles: tuple[str, ...]


def _result(recorder: Recorder, recorded: RecordedConversion) -> RecordedValue:
    """Return the call that makes a storage of its sizes and arrays."""
    arrays = recorded.storage.arrays
    layout = _Layout(recorded.storage.description, tuple(recorded.sizes), tuple(arrays))
    parts = [*recorded.sizes.values(), *arrays.values()]
    return recorder.compute(_converted_storage, layout, recorded.permutation, *parts)


def _converted_storage(layout: _Layout, permutation: Array | None, *parts: Any) -> ConvertedStorage:
    """Return the storage of sizes and arrays, in the order of the layout."""
    description, names, handles = layout
    sizes = dict(zip(names, parts, strict=False))
    arrays = dict(zip(handles, parts[len(names) :], strict=True))
    return ConvertedStorage(Storage(description, sizes, arrays), permutation)
