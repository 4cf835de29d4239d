"""Passes of plugins with the record of gossamer's own passes, so that one function applies both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gossamer_ir.nodes import Module
from gossamer_lower.internal_api import PassRecord

if TYPE_CHECKING:
    from gossamer_backend.internal_api import Extension, Pass


def pass_records(extension: Extension) -> dict[str, PassRecord]:
    """Return the passes of a plugin by `<plugin>.<pass>`, each with a `PassRecord`.

    `Pass` is a record of its own because plugins do not depend on gossamer-lower. Passes with one name are
    one pass for several stages.

    >>> from gossamer.targets.resolve_target import registry
    >>> pass_records(registry.plugin("generic-cpu").backend_extension)
    {}
    """
    by_name: dict[str, list[Pass]] = {}
    for own_pass in extension.passes:
        by_name.setdefault(f"{extension.name}.{own_pass.name}", []).append(own_pass)
    return {name: _record(name, passes, extension) for name, passes in by_name.items()}


def extension_points_of(extension: Extension, name: str) -> tuple[str, ...]:
    """Return the extension points at which the pass `<plugin>.<pass>` runs in a compilation; () if it only
    runs at the ends of stages."""
    points = (record.at for record in extension.passes if f"{extension.name}.{record.name}" == name)
    return tuple(point for point in points if point is not None)


def _record(name: str, passes: Sequence[Pass], extension: Extension) -> PassRecord:
    # A pass that is registered for several extension points of a stage is applied once.
    by_stage = {own_pass.stage: own_pass for own_pass in reversed(passes)}

    def run(module: Module) -> Module:
        return extension.apply_pass(by_stage[module.stage], module)

    stages = tuple(dict.fromkeys(own_pass.stage for own_pass in passes))
    return PassRecord(name=name, function=run, takes=stages)
