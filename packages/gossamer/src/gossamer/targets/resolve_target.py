"""The backend of a target, and the options of a target that depend on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gossamer.targets.parse_target import parse_target
from gossamer_backend import Registry
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import StageName

if TYPE_CHECKING:
    from gossamer_backend import Probe
    from gossamer_backend.internal_api import Plugin, ValidatingBackend
    from gossamer_machine import Machine
    from gossamer_support.plugins.installed_distributions import EntryPoint


def extension_points() -> Mapping[str, StageName]:
    """Return the positions at which passes of plugins may run, each with the stage of modules there."""
    # Imported late: only plugins with such passes need it.
    from gossamer_lower.internal_api import EXTENSION_POINTS

    return {name: point.stage for name, point in EXTENSION_POINTS.items()}


registry = Registry(extension_points=extension_points)
"""The installed plugins: backends and their extensions."""


def plugin_of(target: Target) -> Plugin:
    """Return the backend that compiles for a target, with what plugins registered for it."""
    return registry.plugin(target.backend)


def extension_entry_points(backend: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of the extensions of a backend, without importing them."""
    return registry.extension_entry_points(backend)


def resolve_target(target: str | Target) -> tuple[ValidatingBackend, Target]:
    """Return the backend of a target, and the target with all options explicit that depend on this machine.

    >>> backend, target = resolve_target("generic-cpu")
    >>> backend.name, "cpu" in dict(target.options)
    ('generic-cpu', True)
    """
    wanted = parse_target(target)
    backend = registry.backend(wanted.backend)
    probe = backend.probe(wanted)
    if not probe.is_usable:
        raise ArgumentError(
            "target.unusable",
            f"The target '{wanted.text}' does not work on this machine: {probe.reason}",
            hint="`gossamer backends` lists targets that do.",
        )
    return backend, _resolved_target(probe, wanted)


def resolve_elsewhere(target: str | Target) -> tuple[ValidatingBackend, Target]:
    """Return the backend of a target, and the target with all options explicit, as `resolve_target` does;
    the target need not work on this machine."""
    wanted = parse_target(target)
    backend = registry.backend(wanted.backend)
    return backend, _resolved_target(backend.probe(wanted), wanted)


def machine_for(target: str | Target) -> Machine:
    """Return the machine that a target describes, for which rules schedule programs.

    >>> machine_for("generic-cpu:vector_bits=256,cores=2").lanes("float32")
    8
    """
    backend, resolved = resolve_elsewhere(target)
    return backend.machine(resolved)


def _resolved_target(probe: Probe, wanted: Target) -> Target:
    return wanted if probe.resolved is None else Target.parse(probe.resolved)
