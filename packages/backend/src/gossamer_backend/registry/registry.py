"""The registry finds backends among the installed plugins, and imports them when they are first used."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gossamer_backend.registry.discovery import entry_points, installed_distribution
from gossamer_backend.registry.validating import ValidatingBackend
from gossamer_ir.errors import ArgumentError, GossamerError, PluginError
from gossamer_ir.interchange.records import Target

if TYPE_CHECKING:
    from gossamer_backend.registry.plugin import Plugin

GROUP = "gossamer.plugins"


class EntryPoint(NamedTuple):
    """An entry point of a plugin; `value` is the object reference of its module."""

    name: str
    value: str
    distribution: str


class BackendInfo(msgspec.Struct, frozen=True):
    """An installed backend, and whether it is usable on this machine; `reason` says why not.

    >>> Registry(group="gossamer.no_plugins").backend_infos()
    ()
    >>> BackendInfo("toy", "gossamer-toy", "1.0", ("toy",), usable=False, reason="no device").reason
    'no device'
    """

    name: str
    distribution: str
    version: str
    targets: tuple[str, ...]
    usable: bool
    reason: str = ""


class Registry:
    """The installed backends: entry points of the group `gossamer.plugins`, whose names are the names of the
    backends. A broken plugin does not affect the others. The distribution `gossamer-<name>` owns the name
    `<name>`; otherwise, a name that two distributions register is an error.

    >>> Registry(group="no.such.group").names()
    ()
    """

    def __init__(self, *, group: str = GROUP) -> None:
        self._group = group
        self._entry_points: dict[str, tuple[EntryPoint, ...]] | None = None
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
        return self.plugin(name).backend

    def plugin(self, name: str) -> Plugin:
        """Return everything that the plugin of that name registered; errors as in `backend`."""
        loaded = self._plugins.get(name)
        if loaded is not None:
            return loaded
        # Two threads that ask at once must not import the plugin
        # twice. Reentrant, as a plugin may ask for another.
        with self._lock:
            if name not in self._plugins:
                self._plugins[name] = self._load(name)
            return self._plugins[name]

    def backend_infos(self) -> tuple[BackendInfo, ...]:
        """Return all installed backends, each usable or with the reason. Imports all of them."""
        return tuple(self._describe(name) for name in self.names())

    def _entry_points_by_name(self) -> dict[str, tuple[EntryPoint, ...]]:
        if self._entry_points is None:
            by_name: dict[str, tuple[EntryPoint, ...]] = {}
            for item in _entry_points_of_group(self._group):
                by_name[item.name] = (*by_name.get(item.name, ()), item)
            self._entry_points = {name: _own_or_all(name, items) for name, items in by_name.items()}
        return self._entry_points

    def _load(self, name: str) -> Plugin:
        from gossamer_backend.registry.plugin import load_plugin  # imports pluggy

        candidates = self._own_entry_points(name) or self._entry_points_by_name().get(name)
        if candidates is None:
            known = ", ".join(self.names())
            raise ArgumentError(
                "backend.unknown",
                f"There is no backend '{name}'.",
                hint=f"Installed: {known}." if known else "No backend is installed.",
            )
        if len(candidates) > 1:
            owners = ", ".join(sorted(item.distribution for item in candidates))
            raise PluginError(
                "plugin.duplicate", f"Several distributions install a backend '{name}': {owners}."
            )
        return load_plugin(name, candidates[0].value)

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
        except GossamerError as error:
            return BackendInfo(name, owner, "", (), usable=False, reason=str(error))
        return _backend_info(backend, owner)


def _entry_points_of_group(group: str) -> list[EntryPoint]:
    """Return the entry points of a group, of all installed distributions."""
    # Slow to import, and only needed for names that no distribution `gossamer-<name>` owns.
    from importlib import metadata

    return [
        EntryPoint(item.name, item.value, item.dist.name if item.dist is not None else "unknown")
        for item in metadata.entry_points(group=group)
    ]


def _own_or_all(name: str, items: tuple[EntryPoint, ...]) -> tuple[EntryPoint, ...]:
    """Return only the entry point of the distribution `gossamer-<name>` if it is among them, else all."""
    # Otherwise any distribution could block a backend by registering its name, too.
    own = tuple(item for item in items if item.distribution == f"gossamer-{name}")
    return own or items


def _backend_info(backend: ValidatingBackend, owner: str) -> BackendInfo:
    from gossamer_ir.support.plugin_errors import errors_as_plugin_errors

    try:
        with errors_as_plugin_errors(backend.name, doing="list its targets"):
            targets = backend.targets()
            probe = backend.probe(Target.parse(targets[0] if targets else backend.name))
    except PluginError as error:
        return BackendInfo(
            backend.name, owner, backend.version, (), usable=False, reason=str(error)
        )
    return BackendInfo(
        backend.name, owner, backend.version, targets, usable=probe.usable, reason=probe.reason
    )
