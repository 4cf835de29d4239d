"""A plugin, loaded from its entry point and checked."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pluggy

from gossamer_backend.registry import hookspecs
from gossamer_backend.registry.hookspecs import Pass, ScheduleRule
from gossamer_backend.registry.protocol import API_VERSION, Backend
from gossamer_backend.registry.validating import ValidatingBackend
from gossamer_ir.errors import PluginError
from gossamer_ir.interchange.records import (
    Intrinsic,
    Schedule,
    ScheduleReport,
    Stats,
    Target,
)
from gossamer_ir.nodes import Module
from gossamer_ir.support.plugin_errors import errors_as_plugin_errors


class Plugin(msgspec.Struct, frozen=True):
    """The objects that a plugin registered."""

    backend: ValidatingBackend
    intrinsics: tuple[Intrinsic, ...]
    passes: tuple[Pass, ...]
    primitives: dict[str, Callable[..., Any]]
    """Its schedule primitives by their names in steps, `<plugin>.<name>`."""
    schedules: tuple[ScheduleRule, ...]

    def schedule(
        self, module: Module, target: Target, stats: Stats | None
    ) -> ScheduleReport | Schedule | None:
        """Return what the first of its rules that applies returns; None if none applies."""
        with errors_as_plugin_errors(self.backend.name, doing="choose a schedule"):
            for rule in self.schedules:
                found = rule(module, target, stats)
                if found is not None:
                    return _require_schedule(found)
        return None

    def run_passes(self, module: Module) -> Module:
        """Run the passes for the module's stage, and verify their results, which are of the same stage.
        Errors name the plugin."""
        for backend_pass in self.passes:
            if backend_pass.stage == module.stage:
                module = self.apply_pass(backend_pass, module)
        return module

    def apply_pass(self, backend_pass: Pass, module: Module) -> Module:
        """Run one of the passes on a module of its stage, and verify the result. Errors name the plugin."""
        from gossamer_ir.verify import verify  # only where there is a pass

        with errors_as_plugin_errors(
            self.backend.name, doing=f"run its pass '{backend_pass.name}'"
        ):
            return verify(_require_stage(backend_pass.run(module), module.stage))


def load_plugin(name: str, value: str) -> Plugin:
    """Import a plugin (`value` is the object reference of its entry point) and call its hooks.

    `PluginError` names the plugin and the reason if it is broken."""
    # Each plugin has its own manager, so that a broken one cannot affect others.
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    with errors_as_plugin_errors(name, doing="be loaded"):
        manager.register(pkgutil.resolve_name(value.partition("[")[0].strip()), name=name)
        manager.check_pending()
        backends = _items(manager.hook.gossamer_backends())
        backend = _the_backend(name, backends)
        return Plugin(
            backend=ValidatingBackend(backend),
            intrinsics=_items(manager.hook.gossamer_intrinsics()),
            passes=_items(manager.hook.gossamer_passes()),
            primitives=_primitives_by_name(name, _items(manager.hook.gossamer_primitives())),
            schedules=_items(manager.hook.gossamer_schedules()),
        )


def _primitives_by_name(
    name: str, primitives: Sequence[Callable[..., Any]]
) -> dict[str, Callable[..., Any]]:
    """Return the primitives of a plugin by their names in steps."""
    by_name: dict[str, Callable[..., Any]] = {}
    for primitive in primitives:
        op = getattr(primitive, "op", "")
        if op in by_name:
            raise PluginError(
                "plugin.primitive", f"The plugin '{name}' registers two primitives '{op}'."
            )
        if op.rpartition(".")[0] != name:
            raise PluginError(
                "plugin.primitive",
                f"The plugin '{name}' registers {primitive!r}, which is not a primitive of its own.",
                hint=f"Expected a function with the decorator plugin_primitive('{name}', stages=...).",
            )
        by_name[op] = primitive
    return by_name


def _require_stage(found: object, stage: str) -> Module:
    """Return the result of a pass; raise if it is not a module of the stage, which is lowered next."""
    if isinstance(found, Module) and found.stage == stage:
        return found
    what = f"a module of the {found.stage} stage" if isinstance(found, Module) else repr(found)
    raise TypeError(f"it returned {what}; expected a module of the {stage} stage")


def _require_schedule(found: object) -> ScheduleReport | Schedule:
    if isinstance(found, (ScheduleReport, Schedule)):
        return found
    raise TypeError(f"a rule returned {found!r}; expected a ScheduleReport, a Schedule or None")


def _items(results: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    return tuple(item for result in results for item in result)


def _the_backend(name: str, backends: tuple[Any, ...]) -> Backend:
    if not backends:
        raise PluginError(
            "plugin.no_backend",
            f"The plugin '{name}' registers no backend: it must implement the hook "
            "gossamer_backends.",
        )
    named = [backend for backend in backends if getattr(backend, "name", None) == name]
    if len(named) != 1:
        names = ", ".join(repr(getattr(backend, "name", None)) for backend in backends)
        raise PluginError(
            "plugin.name",
            f"The plugin '{name}' must register one backend of its own name; it registers {names}.",
        )
    return _require_protocol(name, named[0])


def _require_protocol(name: str, backend: Any) -> Backend:
    version = getattr(backend, "api_version", None)
    if version != API_VERSION:
        raise PluginError(
            "plugin.api_version",
            f"The plugin '{name}' is written for version {version} of the backend protocol; "
            f"expected {API_VERSION}.",
        )
    if missing := _missing_members(backend):
        raise PluginError(
            "plugin.members", f"The backend of the plugin '{name}' lacks {', '.join(missing)}."
        )
    if not isinstance(backend.capabilities, frozenset) or not isinstance(backend.version, str):
        raise PluginError(
            "plugin.declarations",
            f"The backend of the plugin '{name}' must declare its capabilities as a frozenset of "
            "text and its version as text.",
        )
    checked: Backend = backend
    return checked


_MEMBERS = ("version", "capabilities", "targets", "probe", "compile", "load")


def _missing_members(backend: object) -> list[str]:
    return [member for member in _MEMBERS if not hasattr(backend, member)]
