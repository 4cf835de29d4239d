"""The registry finds backends and their extensions among the installed plugins, and imports them when they
are first used."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from gossamer_backend.registry.validating import ValidatingBackend
from gossamer_ir.errors import ArgumentError, GossamerError, PluginError
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import StageName
from gossamer_support.message_texts import nearest
from gossamer_support.plugins.groups import BACKEND_GROUP, EXTENSION_GROUP
from gossamer_support.plugins.installed_distributions import (
    EntryPoint,
    entry_points,
    installed_distribution,
    installed_entry_points,
    normalized_name,
)
from gossamer_support.plugins.plugin_errors import duplicate_error, errors_as_plugin_errors

if TYPE_CHECKING:
    from gossamer_backend.registry.extension import Extension, ExtensionPoints
    from gossamer_backend.registry.plugin import Plugin


class ExtensionInfo(msgspec.Struct, frozen=True):
    """An installed extension of a backend; `reason` says why it is broken (None: it is not).

    >>> ExtensionInfo("fast", "acme-fast", "no license").reason
    'no license'
    """

    name: str
    distribution: str
    reason: str | None = None


class BackendInfo(msgspec.Struct, frozen=True):
    """An installed backend, and whether it is usable on this machine; `reason` says why not.
    A backend that cannot be loaded has no version.

    >>> Registry(group="gossamer.no_plugins").backend_infos()
    ()
    >>> BackendInfo("toy", "gossamer-toy", "1.0", ("toy",), is_usable=False, reason="no device").reason
    'no device'
    """

    name: str
    distribution: str
    version: str | None
    targets: tuple[str, ...]
    is_usable: bool
    reason: str | None = None
    extensions: tuple[ExtensionInfo, ...] = ()


def _no_extension_points() -> Mapping[str, StageName]:
    return {}


class PluginWarning(UserWarning):
    """An installed plugin is not used, probably because of a misspelt name."""


class Registry:
    """The installed backends: entry points of the group `gossamer.plugins`, whose names are the names of the
    backends. A broken plugin does not affect other backends. The distribution `gossamer-<name>` owns the name
    `<name>`; otherwise, a name that two distributions register is an error.

    Plugins without a backend extend that of another: entry points of the group `gossamer.extensions`.
    `extension_points` returns the positions at which passes of plugins may run.

    >>> Registry(group="no.such.group").names()
    ()
    """

    def __init__(
        self,
        *,
        group: str = BACKEND_GROUP.name,
        extension_points: ExtensionPoints = _no_extension_points,
    ) -> None:
        self._group = group
        self._extension_points = extension_points
        self._entry_points: dict[str, tuple[EntryPoint, ...]] | None = None
        self._extension_entry_points: tuple[EntryPoint, ...] | None = None
        self._backend_plugins: dict[str, Plugin] = {}
        self._extensions: dict[EntryPoint, Extension] = {}
        self._plugins: dict[str, Plugin] = {}
        self._lock = threading.RLock()

    def names(self) -> tuple[str, ...]:
        """Return the names of all installed backends, sorted, without importing them."""
        return tuple(sorted(self._entry_points_by_name()))

    def backend(self, name: str) -> ValidatingBackend:
        """Return the backend of that name.

        `ArgumentError` (`backend.unknown`) lists the installed backends; `PluginError` reports a broken
        plugin.
        """
        return self._backend_plugin(name).backend

    def plugin(self, name: str) -> Plugin:
        """Return the backend of that name with everything that its plugin and all extensions registered;
        errors as in `backend`, also for a broken extension: kernels must not depend on whether it works."""
        loaded = self._plugins.get(name)
        if loaded is not None:
            return loaded
        from gossamer_backend.registry.plugin import extended_plugin  # imports pluggy

        backend_plugin = self._backend_plugin(name)
        for point, similar in self.unattached_extensions().items():
            if similar == name:
                warnings.warn(unattached_message(point, similar), PluginWarning, stacklevel=2)
        extensions = [self.extension(name, point) for point in self.extension_entry_points(name)]
        return self._plugins.setdefault(name, extended_plugin(backend_plugin, extensions))

    def extension_entry_points(self, backend: str) -> tuple[EntryPoint, ...]:
        """Return the entry points of the extensions of a backend, sorted by name, without importing them.

        Raises `PluginError` (`plugin.duplicate`) if several distributions register one name."""
        points = self._all_extension_entry_points()
        matching = tuple(point for point in points if point.name.partition(".")[0] == backend)
        for first, second in pairwise(matching):
            if first.name == second.name:
                raise duplicate_error(f"the extension '{first.name}'", (first, second))
        return matching

    def unattached_extensions(self) -> dict[EntryPoint, str | None]:
        """Return the entry points of extensions whose backend is not installed, each with the name of an
        installed backend that may be meant, or None.

        They are not errors, since an extension may have an entry point for each of several backends.
        """
        names = self.names()
        points = self._all_extension_entry_points()
        strangers = (point for point in points if point.name.partition(".")[0] not in names)
        return {
            point: nearest(point.name.partition(".")[0], names, cutoff=0.8) for point in strangers
        }

    def extension(self, backend: str, point: EntryPoint) -> Extension:
        """Return what the extension of an entry point registered; raise `PluginError` if it is broken."""
        from gossamer_backend.registry.extension import load_extension  # imports pluggy

        with self._lock:
            if point not in self._extensions:
                self._extensions[point] = load_extension(
                    backend, point, points=self._extension_points
                )
            return self._extensions[point]

    def _all_extension_entry_points(self) -> tuple[EntryPoint, ...]:
        # Read once: the keys of kernels must be those of the extensions that have been loaded.
        if self._extension_entry_points is None:
            self._extension_entry_points = installed_entry_points(EXTENSION_GROUP.name)
        return self._extension_entry_points

    def working_extensions(self, backend: str) -> Iterator[Extension]:
        """Yield what the plugin of a backend registered, and then its extensions, without broken ones."""
        with contextlib.suppress(PluginError):
            yield self._backend_plugin(backend).backend_extension
        with contextlib.suppress(PluginError):
            for point in self.extension_entry_points(backend):
                with contextlib.suppress(PluginError):
                    yield self.extension(backend, point)

    def _backend_plugin(self, name: str) -> Plugin:
        """Return a backend with everything that its own plugin registered."""
        loaded = self._backend_plugins.get(name)
        if loaded is not None:
            return loaded
        # Two threads must not import the plugin twice. Reentrant, as a plugin may ask for another.
        with self._lock:
            if name not in self._backend_plugins:
                self._backend_plugins[name] = self._load(name)
            return self._backend_plugins[name]

    def backend_infos(self) -> tuple[BackendInfo, ...]:
        """Return all installed backends, each usable or with the reason. Imports all of them."""
        return tuple(self._describe(name) for name in self.names())

    def _entry_points_by_name(self) -> dict[str, tuple[EntryPoint, ...]]:
        if self._entry_points is None:
            by_name: dict[str, tuple[EntryPoint, ...]] = {}
            for item in installed_entry_points(self._group):
                by_name[item.name] = (*by_name.get(item.name, ()), item)
            self._entry_points = {name: _own_or_all(name, items) for name, items in by_name.items()}
        return self._entry_points

    def _load(self, name: str) -> Plugin:
        from gossamer_backend.registry.plugin import load_plugin  # imports pluggy

        candidates = self._own_entry_points(name) or self._entry_points_by_name().get(name)
        if candidates is None:
            names = ", ".join(self.names())
            raise ArgumentError(
                "backend.unknown",
                f"There is no backend '{name}'.",
                hint=f"Installed: {names}." if names else "No backend is installed.",
            )
        if len(candidates) > 1:
            raise duplicate_error(f"the backend '{name}'", candidates)
        return load_plugin(candidates[0], points=self._extension_points)

    def _own_entry_points(self, name: str) -> tuple[EntryPoint, ...]:
        """Return the entry point of a backend in the distribution `gossamer-<name>`, which owns that name:
        one look-up instead of a search of all distributions."""
        # The full list has been read already and has the owner's entry first.
        if self._entry_points is not None:
            return ()
        owner = f"gossamer-{name}"
        distribution = installed_distribution(owner)
        value = (
            None
            if distribution is None
            else entry_points(distribution, group=self._group).get(name)
        )
        return () if value is None else (EntryPoint(name, value, owner),)

    def _describe(self, name: str) -> BackendInfo:
        owner = ", ".join(sorted(item.distribution for item in self._entry_points_by_name()[name]))
        try:
            backend = self.backend(name)
            extensions = self._extension_infos(name)
        except GossamerError as error:
            return BackendInfo(name, owner, None, (), is_usable=False, reason=str(error))
        return replace(_backend_info(backend, owner), extensions=extensions)

    def _extension_infos(self, backend: str) -> tuple[ExtensionInfo, ...]:
        infos = []
        for point in self.extension_entry_points(backend):
            reason = None
            try:
                self.extension(backend, point)
            except PluginError as error:
                reason = str(error)
            infos.append(ExtensionInfo(point.name.partition(".")[2], point.distribution, reason))
        return tuple(infos)


def _own_or_all(name: str, items: tuple[EntryPoint, ...]) -> tuple[EntryPoint, ...]:
    """Return only the entry point of the distribution `gossamer-<name>` if it is among them, else all."""
    # Otherwise any distribution could block a backend by registering its name, too.
    owner = normalized_name(f"gossamer-{name}")
    official = tuple(item for item in items if item.distribution == owner)
    return official or items


def unattached_message(point: EntryPoint, similar: str | None) -> str:
    """Return why an extension of a backend that is not installed is not used.

    >>> unattached_message(EntryPoint("generic_cpu.fast", "acme", "acme"), "generic-cpu")
    "The extension 'generic_cpu.fast' of 'acme' is not used: there is no backend 'generic_cpu'. Did you mean \
'generic-cpu'?"
    """
    backend = point.name.partition(".")[0]
    hint = f" Did you mean '{similar}'?" if similar is not None else ""
    return (
        f"The extension '{point.name}' of '{point.distribution}' is not used: there is no backend "
        f"'{backend}'.{hint}"
    )


def _backend_info(backend: ValidatingBackend, owner: str) -> BackendInfo:
    try:
        with errors_as_plugin_errors(backend.name, doing="list its targets"):
            targets = backend.targets()
            probe = backend.probe(Target.parse(targets[0] if targets else backend.name))
    except PluginError as error:
        return BackendInfo(
            backend.name, owner, backend.version, (), is_usable=False, reason=str(error)
        )
    return BackendInfo(
        backend.name,
        owner,
        backend.version,
        targets,
        is_usable=probe.is_usable,
        reason=probe.reason,
    )
