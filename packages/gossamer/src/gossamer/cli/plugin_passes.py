"""Passes of plugins with the record of gossamer's own passes, so that one function applies both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gossamer_ir.nodes import Module
from gossamer_lower.lowering_pass import PassRecord

if TYPE_CHECKING:
    from gossamer_backend.registry.hookspecs import Pass
    from gossamer_backend.registry.plugin import Plugin


def pass_records(plugin: Plugin) -> dict[str, PassRecord]:
    """Return the passes of a plugin by `<plugin>.<pass>`, each with a `PassRecord`.

    `Pass` is a record of its own because plugins do not depend on gossamer-lower. Passes with one name are
    one pass for several stages.

    >>> from gossamer.resolve_target import registry
    >>> pass_records(registry.plugin("generic-cpu"))
    {}
    """
    by_name: dict[str, list[Pass]] = {}
    for backend_pass in plugin.passes:
        name = f"{plugin.backend.name}.{backend_pass.name}"
        by_name.setdefault(name, []).append(backend_pass)
    return {name: _record(name, passes, plugin) for name, passes in by_name.items()}


def _record(name: str, passes: Sequence[Pass], plugin: Plugin) -> PassRecord:
    def run(module: Module) -> Module:
        for backend_pass in passes:
            if backend_pass.stage == module.stage:
                module = plugin.apply_pass(backend_pass, module)
        return module

    stages = tuple(dict.fromkeys(backend_pass.stage for backend_pass in passes))
    return PassRecord(name=name, function=run, takes=stages)
