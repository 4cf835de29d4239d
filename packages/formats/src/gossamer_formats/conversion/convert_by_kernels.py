"""Converts storages by programs: the plan of an earlier conversion of the same kind is replayed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from gossamer_formats.conversion.intermediate_formats import plan_conversion
from gossamer_formats.conversion.recording.branch import (
    Branch,
    PlanValue,
    UnplannedError,
    merge,
    run_plan,
)
from gossamer_formats.conversion.recording.recorded_storage import (
    PlannedConversion,
    kind_sizes,
    planned_source,
)
from gossamer_formats.conversion.recording.recorder import Recorder
from gossamer_formats.conversion.target.conversion_target import ConversionTarget
from gossamer_formats.conversion.target.converted_storage import ConvertedStorage, require_shape
from gossamer_formats.conversion.target.element_options import ElementOptions
from gossamer_formats.registry.compiler import Compile
from gossamer_formats.storage import Array, Storage
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.support.bounded_dict import put_bounded

MAX_RECORDED = 256
"""The number of plans that are kept for a target."""


def convert_by_programs(
    source: Storage, target: ConversionTarget, compile: Compile, options: ElementOptions
) -> ConvertedStorage | None:
    """Return a checked storage in another format, whose arrays are new or those of the source; None if this
    is left to NumPy."""
    handles = tuple(source.arrays)
    key = (compile, source.description, kind_sizes(source), handles, options)
    plan: Branch | None = target.memo.get(key)
    if plan is not None:
        try:
            found: ConvertedStorage | None = run_plan(plan, source.arrays.values())
            return found
        except UnplannedError:
            pass
    return _record(source, target, compile, options, key)


def _record(
    source: Storage,
    target: ConversionTarget,
    compile: Compile,
    options: ElementOptions,
    key: Hashable,
) -> ConvertedStorage | None:
    """Convert a storage, and record how."""
    inputs = list(source.arrays.values())
    recorder = Recorder(compile, inputs)
    planned = plan_conversion(recorder, planned_source(recorder, source), target, options)
    result = None if planned is None else _result(recorder, planned)
    found: ConvertedStorage | None = recorder.value(result)
    if found is not None:
        require_shape(found.storage, source)
    recorded, plan = recorder.finish(result), target.memo.get(key)
    if plan is None:
        put_bounded(target.memo, key, recorded, limit=MAX_RECORDED)
    else:
        merge(plan, recorded)
    return found


class _Layout(NamedTuple):
    """The description of a storage, the names of its sizes and the handles of its arrays."""

    description: FormatDescription
    sizes: tuple[str, ...]
    handles: tuple[str, ...]


def _result(recorder: Recorder, planned: PlannedConversion) -> PlanValue:
    """Return the step that makes a storage of its sizes and arrays."""
    arrays = planned.storage.arrays
    layout = _Layout(planned.storage.description, tuple(planned.sizes), tuple(arrays))
    parts = [*planned.sizes.values(), *arrays.values()]
    return recorder.compute(_converted_storage, layout, planned.permutation, *parts)


def _converted_storage(layout: _Layout, permutation: Array | None, *parts: Any) -> ConvertedStorage:
    """Return the storage of sizes and arrays, in the order of the layout."""
    description, names, handles = layout
    sizes = dict(zip(names, parts, strict=False))
    arrays = dict(zip(handles, parts[len(names) :], strict=True))
    return ConvertedStorage(Storage(description, sizes, arrays), permutation)
