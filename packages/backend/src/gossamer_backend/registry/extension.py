"""Rules, passes, primitives and intrinsics that a plugin adds to a backend, its own or another."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import pluggy

from gossamer_backend.registry import hookspecs
from gossamer_backend.registry.hookspecs import Pass, ScheduleRule
from gossamer_ir.errors import PluginError
from gossamer_ir.interchange.records import (
    Intrinsic,
    Schedule,
    ScheduleReport,
    ScheduleSpace,
    Stats,
)
from gossamer_ir.nodes import STAGES, Module, StageName
from gossamer_machine.machine import Machine
from gossamer_support.message_texts import in_quotes
from gossamer_support.plugins.installed_distributions import EntryPoint
from gossamer_support.plugins.plugin_errors import errors_as_plugin_errors

ExtensionPoints: TypeAlias = Callable[[], Mapping[str, StageName]]
"""A function that returns the positions within the lowering passes at which passes of plugins may run, each
with the stage of modules there."""

RuleResult: TypeAlias = ScheduleSpace | ScheduleReport | Schedule
"""The result of a rule for a program to which it applies."""

_NAME = re.compile(r"[^\W\d][\w-]*")
"""The name of a plugin, which is the first part of the names of its passes and primitives."""


def no_check(module: Module) -> None:
    """Accept any module."""


class Extension(msgspec.Struct, frozen=True):
    """Objects that one plugin registered for one backend, besides a backend; `name` is the plugin's."""

    name: str
    intrinsics: tuple[Intrinsic, ...]
    passes: tuple[Pass, ...]
    primitives: dict[str, Callable[..., Any]]
    """Its schedule primitives by their names in steps, `<plugin>.<name>`."""
    schedules: tuple[ScheduleRule, ...]

    def schedule(self, module: Module, machine: Machine, stats: Stats | None) -> RuleResult | None:
        """Return what the first of its rules that applies returns; None if none applies."""
        with errors_as_plugin_errors(self.name, doing="choose a schedule"):
            for rule in self.schedules:
                planned = rule(module, machine, stats)
                if planned is not None:
                    return _required_schedule(planned)
        return None

    def apply_pass(
        self, own_pass: Pass, module: Module, *, check: Callable[[Module], None] = no_check
    ) -> Module:
        """Run one of the plugin's passes on a module of that stage, verify the result, and call `check` with
        it. Errors name the plugin."""
        from gossamer_ir.verify import verify  # only where there is a pass

        with errors_as_plugin_errors(self.name, doing=f"run its pass '{own_pass.name}'"):
            result = verify(_required_stage(own_pass.run(module), module.stage))
            check(result)
        return result


def register_plugin(name: str, point: EntryPoint) -> pluggy.PluginManager:
    """Import the plugin of an entry point, and return the manager that calls its hooks."""
    # Each plugin has its own manager, so that a broken one cannot affect others.
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(point.load(), name=name)
    manager.check_pending()
    return manager


def load_extension(backend: str, point: EntryPoint, *, points: ExtensionPoints) -> Extension:
    """Import the plugin of an entry point of the group `gossamer.extensions`, and call its hooks.

    `PluginError` names the plugin and the reason if it is broken."""
    name = point.name.removeprefix(f"{backend}.")
    if not _NAME.fullmatch(name) or name == backend:
        raise PluginError(
            "plugin.extension",
            f"The distribution '{point.distribution}' registers an extension '{point.name}' of the "
            f"backend '{backend}'.",
            hint="Expected <backend>.<extension>; an extension's name is an identifier, which may have "
            "hyphens, and is not that of the backend.",
        )
    with errors_as_plugin_errors(name, doing=f"extend the backend '{backend}'"):
        manager = register_plugin(name, point)
        if manager.hook.gossamer_backends():
            raise PluginError(
                "plugin.extension",
                f"The plugin '{name}' is registered as an extension of the backend '{backend}', but "
                "registers a backend of its own.",
                hint="Plugins with a backend have an entry point of the group 'gossamer.plugins'.",
            )
        return extension_of(name, manager, points=points)


def extension_of(name: str, manager: pluggy.PluginManager, *, points: ExtensionPoints) -> Extension:
    """Call the hooks of a plugin, except that for backends, and check what they return."""
    hook = manager.hook
    return Extension(
        name=name,
        intrinsics=_items(name, hook.gossamer_intrinsics, of=Intrinsic),
        passes=_checked_passes(name, _items(name, hook.gossamer_passes, of=Pass), points),
        primitives=_primitives_by_name(name, _items(name, hook.gossamer_primitives, of=object)),
        schedules=_items(name, hook.gossamer_schedules, of=Callable),
    )


def _items(name: str, hook: pluggy.HookCaller, *, of: Any) -> tuple[Any, ...]:
    """Return all objects that a hook registers, which are of this type."""
    items = tuple(item for result in hook() for item in result)
    for item in items:
        if not isinstance(item, of):
            raise PluginError(
                "plugin.hook",
                f"The hook {hook.name} of the plugin '{name}' returned {item!r}; expected "
                f"objects of type '{of.__name__}'.",
            )
    return items


def _checked_passes(
    name: str, passes: tuple[Pass, ...], points: ExtensionPoints
) -> tuple[Pass, ...]:
    """Return the passes of a plugin; raise for a stage or an extension point that does not exist."""
    for added in passes:
        if added.stage not in STAGES:
            raise PluginError(
                "plugin.stage",
                f"The pass '{added.name}' of the plugin '{name}' is for the stage {added.stage!r}.",
                hint=f"Stages are {', '.join(STAGES)}.",
            )
        if added.at is not None:
            _require_extension_point(name, added, added.at, points())
    return passes


def _require_extension_point(
    name: str, own_pass: Pass, point: str, points: Mapping[str, StageName]
) -> None:
    stage = points.get(point)
    if stage is None:
        listed = in_quotes(points) or "none"
        raise PluginError(
            "plugin.extension_point",
            f"The pass '{own_pass.name}' of the plugin '{name}' runs at {point!r}, which is not an "
            "extension point.",
            hint=f"Extension points are {listed}.",
        )
    if stage != own_pass.stage:
        raise PluginError(
            "plugin.extension_point",
            f"The pass '{own_pass.name}' of the plugin '{name}' is for the {own_pass.stage} stage, but "
            f"modules are of the {stage} stage at '{point}'.",
            hint=f"Register it as Pass({own_pass.name!r}, {stage!r}, ..., at={point!r}).",
        )


def _primitives_by_name(
    name: str, primitives: Sequence[Callable[..., Any]]
) -> dict[str, Callable[..., Any]]:
    """Return the primitives of a plugin by their names in steps."""
    by_name: dict[str, Callable[..., Any]] = {}
    for primitive in primitives:
        op = getattr(primitive, "op", None)
        if op in by_name:
            raise PluginError(
                "plugin.primitive", f"The plugin '{name}' registers two primitives '{op}'."
            )
        if op is None or op.rpartition(".")[0] != name:
            raise PluginError(
                "plugin.primitive",
                f"The plugin '{name}' registers {primitive!r}, which is not a primitive of its own.",
                hint=f"Expected a function with the decorator plugin_primitive('{name}', stages=...).",
            )
        by_name[op] = primitive
    return by_name


def _required_stage(result: object, stage: str) -> Module:
    """Return the result of a pass; raise if it is not a module of the stage, which is lowered next."""
    if isinstance(result, Module) and result.stage == stage:
        return result
    what = f"a module of the {result.stage} stage" if isinstance(result, Module) else repr(result)
    raise TypeError(f"it returned {what}; expected a module of the {stage} stage")


def _required_schedule(result: object) -> RuleResult:
    if isinstance(result, ScheduleSpace):
        points = [report.point for report in result.reports]
        if not points or any(point in points[:number] for number, point in enumerate(points)):
            raise ValueError("a rule returned a ScheduleSpace without points, or with one twice")
        return result
    if isinstance(result, (ScheduleReport, Schedule)):
        return result
    raise TypeError(
        f"a rule returned {result!r}; expected a ScheduleSpace, a ScheduleReport, a Schedule or None"
    )
