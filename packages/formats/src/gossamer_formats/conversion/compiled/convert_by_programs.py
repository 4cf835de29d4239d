"""Converts storages by programs: the plan of an earlier conversion of the same kind is replayed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from gossamer_formats.conversion.compiled.conversion_steps import plan_conversion
from gossamer_formats.conversion.compiled.options import Options
from gossamer_formats.conversion.compiled.plans.plan import (
    Branch,
    UnplannedError,
    Value,
    merge,
    replay,
)
from gossamer_formats.conversion.compiled.plans.planned_storage import (
    PlannedConversion,
    kind_sizes,
    planned_source,
)
from gossamer_formats.conversion.compiled.plans.recorder import Recorder
from gossamer_formats.conversion.target.conversion_target import ConversionTarget
from gossamer_formats.conversion.target.converted_storage import ConvertedStorage
from gossamer_formats.registry.compiler import Compile
from gossamer_formats.storage import Array, Storage
from gossamer_ir.nodes import FormatDescription


class Kind(NamedTuple):
    """What tensors that are converted by one plan have in common; `handles` are those of the arrays."""

    compile: Compile
    source: FormatDescription
    sizes: tuple[tuple[str, int], ...]
    handles: tuple[str, ...]
    target: FormatDescription
    parameters: tuple[tuple[str, int], ...]
    orders: tuple[tuple[str, Any], ...]
    options: Options


class _KeptPlan:
    """The plan of a kind, None before the first conversion."""

    def __init__(self) -> None:
        self.plan: Branch | None = None


MOST_KINDS = 256
"""The number of kinds whose plans are kept: those that were used last."""


@lru_cache(maxsize=MOST_KINDS)
def _kept_plan(kind: Kind) -> _KeptPlan:
    return _KeptPlan()


def convert_by_programs(
    source: Storage, target: ConversionTarget, compile: Compile, options: Options
) -> ConvertedStorage | None:
    """Return a checked storage in another format; None if this is left to NumPy."""
    kept = _KeptPlan()
    if not target.is_for_one_tensor:
        kept = _kept_plan(_kind(source, target, compile, options))
    if kept.plan is not None:
        try:
            found: ConvertedStorage | None = replay(kept.plan, list(source.arrays.values()))
            return found
        except UnplannedError:
            pass
    return _record(source, target, compile, options, kept)


def _kind(source: Storage, target: ConversionTarget, compile: Compile, options: Options) -> Kind:
    return Kind(
        compile,
        source.description,
        kind_sizes(source),
        tuple(source.arrays),
        target.description,
        tuple(target.parameters.items()),
        tuple(target.orders.items()),
        options,
    )


def _record(
    source: Storage,
    target: ConversionTarget,
    compile: Compile,
    options: Options,
    kept: _KeptPlan,
) -> ConvertedStorage | None:
    """Convert a storage, and record how."""
    recorder = Recorder(compile, list(source.arrays.values()))
    planned = plan_conversion(recorder, planned_source(recorder, source), target, options)
    result = None if planned is None else _result(recorder, planned)
    recorded = recorder.finish(result)
    if kept.plan is None:
        kept.plan = recorded
    else:
        merge(kept.plan, recorded)
    found: ConvertedStorage | None = recorder.value(result)
    return found


def _result(recorder: Recorder, planned: PlannedConversion) -> Value:
    """Return the step that makes a storage of its arrays."""
    names, handles = tuple(planned.sizes), tuple(planned.storage.arrays)
    return recorder.compute(
        _converted_storage,
        (planned.storage.description, names, handles),
        planned.permutation,
        *planned.sizes.values(),
        *planned.storage.arrays.values(),
    )


def _converted_storage(
    layout: tuple[FormatDescription, tuple[str, ...], tuple[str, ...]],
    permutation: Array | None,
    *parts: Any,
) -> ConvertedStorage:
    """Return the storage of a description with the sizes and the arrays that are named, in this order."""
    description, names, handles = layout
    sizes: Mapping[str, int] = dict(zip(names, parts, strict=False))
    arrays = dict(zip(handles, parts[len(names) :], strict=True))
    return ConvertedStorage(Storage(description, sizes, arrays), permutation)
