"""A plugin with a backend, loaded from its entry point and checked, and the extensions of its backend."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from gossamer_backend.registry.extension import (
    Extension,
    ExtensionPoints,
    RuleResult,
    extension_of,
    no_check,
    register_plugin,
)
from gossamer_backend.registry.protocol import API_VERSION, Backend
from gossamer_backend.registry.validating import ValidatingBackend
from gossamer_ir.errors import PluginError
from gossamer_ir.interchange.records import Intrinsic, Stats
from gossamer_ir.nodes import Module
from gossamer_machine.machine import Machine
from gossamer_support.plugins.installed_distributions import EntryPoint
from gossamer_support.plugins.plugin_errors import errors_as_plugin_errors


class Plugin(msgspec.Struct, frozen=True):
    """A backend, and what installed plugins registered for it."""

    backend: ValidatingBackend
    extensions: tuple[Extension, ...]
    """In the order in which their rules and passes run: those of other plugins by their names, and finally
    that of the plugin that has the backend."""

    @property
    def backend_extension(self) -> Extension:
        """The registration of the plugin that has the backend."""
        return self.extensions[-1]

    @property
    def extension_points(self) -> frozenset[str]:
        """The positions within the lowering passes at which some of the passes run."""
        passes = (item for extension in self.extensions for item in extension.passes)
        return frozenset(item.at for item in passes if item.at is not None)

    @property
    def intrinsics(self) -> tuple[Intrinsic, ...]:
        """The intrinsics of all extensions."""
        return tuple(item for extension in self.extensions for item in extension.intrinsics)

    @property
    def primitives(self) -> dict[str, Callable[..., Any]]:
        """The schedule primitives of all extensions by their names in steps, `<plugin>.<name>`."""
        return {
            op: item for extension in self.extensions for op, item in extension.primitives.items()
        }

    def schedule(
        self, module: Module, machine: Machine, stats: Stats | None
    ) -> tuple[str, RuleResult] | None:
        """Return the name of the first plugin that has a rule that applies, and what the rule returns; None
        if no rule applies."""
        for extension in self.extensions:
            planned = extension.schedule(module, machine, stats)
            if planned is not None:
                return extension.name, planned
        return None

    def run_passes(
        self,
        module: Module,
        *,
        point: str | None = None,
        check: Callable[[Module], None] = no_check,
    ) -> Module:
        """Run the passes for the module's stage that are registered for an extension point (by default those
        for the end of the stage). Verify their results, which are of the same stage, and which `check` may
        refuse, too. Errors name the plugin."""
        for extension in self.extensions:
            for own_pass in extension.passes:
                # The result of one pass is the input of the next, so a pass sees what others have inserted.
                if (own_pass.stage, own_pass.at) == (module.stage, point):
                    module = extension.apply_pass(own_pass, module, check=check)
        return module


def load_plugin(point: EntryPoint, *, points: ExtensionPoints) -> Plugin:
    """Import the plugin of an entry point of the group `gossamer.plugins`, and call its hooks.

    `PluginError` names the plugin and the reason if it is broken."""
    name = point.name
    with errors_as_plugin_errors(name, doing="be loaded"):
        manager = register_plugin(name, point)
        backends = (item for result in manager.hook.gossamer_backends() for item in result)
        backend = _the_backend(name, tuple(backends))
        extension = extension_of(name, manager, points=points)
        return Plugin(ValidatingBackend(backend), (extension,))


def extended_plugin(plugin: Plugin, extensions: Iterable[Extension]) -> Plugin:
    """Return a plugin with extensions of other plugins. Raise `PluginError` (`plugin.intrinsic`) for two
    intrinsics of one name, since steps refer to them by name."""
    extended = Plugin(plugin.backend, (*extensions, *plugin.extensions))
    owners: dict[str, str] = {}
    for extension in extended.extensions:
        for intrinsic in extension.intrinsics:
            owner = owners.setdefault(intrinsic.name, extension.name)
            if owner != extension.name:
                raise PluginError(
                    "plugin.intrinsic",
                    f"The plugins '{owner}' and '{extension.name}' both register an intrinsic "
                    f"'{intrinsic.name}' for the backend '{plugin.backend.name}'.",
                )
    return extended


def _the_backend(name: str, backends: tuple[Any, ...]) -> Backend:
    if not backends:
        raise PluginError(
            "plugin.no_backend",
            f"The plugin '{name}' registers no backend: it must implement the hook "
            "gossamer_backends.",
        )
    # The name of the entry point selects a plugin before it is imported, so its backend must have that name.
    named = [backend for backend in backends if getattr(backend, "name", None) == name]
    if len(named) != 1:
        names = ", ".join(repr(getattr(backend, "name", None)) for backend in backends)
        raise PluginError(
            "plugin.name",
            f"The plugin '{name}' must register one backend of its own name; it registers {names}.",
        )
    return _required_protocol(name, named[0])


def _required_protocol(name: str, backend: Any) -> Backend:
    # Before the members: those of another version of the API differ for that reason.
    version = getattr(backend, "api_version", None)
    if type(version) is not int or version != API_VERSION:
        raise _version_error(name, version)
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


def _version_error(name: str, version: object) -> PluginError:
    hint = (
        "Install a release of the plugin for this version of gossamer. In the plugin, set "
        "api_version to API_VERSION after the changes that docs/plugins.md lists."
    )
    if isinstance(version, int) and version > API_VERSION:
        hint = "Install a newer release of gossamer, or an older one of the plugin."
    return PluginError(
        "plugin.api_version",
        f"The plugin '{name}' is written for version {version!r} of the plugin API; "
        f"expected {API_VERSION}.",
        hint=hint,
    )


_MEMBERS = ("version", "capabilities", "targets", "probe", "machine", "compile", "load")


def _missing_members(backend: object) -> list[str]:
    return [member for member in _MEMBERS if not hasattr(backend, member)]
