"""Installed distributions and their entry points, read from the folders that describe them.

`importlib.metadata` finds the same, but it imports parsers of mail and archives. On a busy machine with two
cores, its import took 190 ms or more and one look-up 30 ms, against 0.5 ms for `installed_distribution`.
Loading a cached kernel needs the entry points of one group and the versions of a few distributions. Hence
`importlib.metadata` is used only for what is not found here: distributions in archives and eggs, those
described by `.egg-info` folders, and those of other finders than that of `sys.path`.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from importlib.machinery import PathFinder
from typing import Any, NamedTuple

import msgspec

_SUFFIX = ".dist-info"
_OLD_SUFFIX = ".egg-info"


class InstalledDistribution(msgspec.Struct, frozen=True):
    """A distribution: its version, and the folder that describes it."""

    name: str
    version: str
    folder: str

    def read(self, file: str) -> str | None:
        """Return the text of a file in the folder, or None if it cannot be read."""
        try:
            # Not by `pathlib`: a process reads, or looks for, a file of each distribution.
            with open(os.path.join(self.folder, file), encoding="utf-8") as stream:
                return stream.read()
        except OSError:
            return None


class EntryPoint(NamedTuple):
    """An entry point of a plugin; `value` is the object reference of a module or an object in it, and
    `distribution` a normalized name."""

    name: str
    value: str
    distribution: str

    def load(self) -> Any:
        """Import the module, and return the object. Exceptions of the module pass.

        >>> EntryPoint("pi", "math:pi", "acme").load()
        3.141592653589793
        """
        import pkgutil  # most processes load no plugin

        # Old entry points end with extras, as in `acme [fast]`.
        return pkgutil.resolve_name(self.value.partition("[")[0].strip())


def installed_distribution(name: str) -> InstalledDistribution | None:
    """Return the distribution of that name that comes first on `sys.path`, or None if it is not found.

    Source: "Recording installed projects" in the packaging specifications.

    >>> distribution = installed_distribution("gossamer-support")
    >>> distribution.name, distribution.folder.endswith(
    ...     f"gossamer_support-{distribution.version}.dist-info"
    ... )
    ('gossamer-support', True)
    """
    wanted = normalized_name(name)
    for directory in sys.path:
        version = _versions(directory, _modification_time(directory)).get(wanted)
        if version is not None:
            return InstalledDistribution(name, *version)
    return None


def installed_entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, of all installed distributions, sorted by their names.

    >>> installed_entry_points("no.such.group")
    ()
    """
    if _has_other_finders() or any(
        _has_other_entry_points(directory, _modification_time(directory)) for directory in sys.path
    ):
        return _entry_points_by_importlib(group)
    by_owner: dict[str, tuple[EntryPoint, ...]] = {}
    for directory in sys.path:
        for owner, points in _entry_points_in(directory, _modification_time(directory), group):
            # The first on `sys.path` is the one that is imported.
            by_owner.setdefault(owner, points)
    return tuple(sorted(point for points in by_owner.values() for point in points))


def entry_points(distribution: InstalledDistribution, *, group: str) -> dict[str, str]:
    """Return the object references of the entry points of a group, by name."""
    # A distribution without entry points has no such file.
    return _points_in_text(distribution.read("entry_points.txt") or "", group)


def _points_in_text(text: str, group: str) -> dict[str, str]:
    points: dict[str, str] = {}
    current = None
    for line in text.splitlines():
        entry = line.strip()
        if entry.startswith("["):
            current = entry.strip("[]").strip()
        elif current == group and "=" in entry and not entry.startswith(("#", ";")):
            name, _, value = entry.partition("=")
            points[name.strip()] = value.strip()
    return points


def normalized_name(name: str) -> str:
    """Return the normalized name of a distribution, by which names are compared.

    >>> normalized_name("Acme.fast_math")
    'acme-fast-math'
    """
    return name.lower().replace("_", "-").replace(".", "-")


def _modification_time(directory: str) -> int:
    try:
        return os.stat(directory or ".").st_mtime_ns
    except OSError:
        return -1


@lru_cache(maxsize=64)
def _description_names(directory: str, _modified: int) -> tuple[str, ...]:
    """Return the names of what describes distributions in a directory of `sys.path`."""
    try:
        entries = os.listdir(directory or ".")
    except OSError:
        return ()
    return tuple(entry for entry in entries if entry.endswith((_SUFFIX, _OLD_SUFFIX)))


@lru_cache(maxsize=64)
def _versions(directory: str, modified: int) -> dict[str, tuple[str, str]]:
    """Return version and folder of each distribution in a directory of `sys.path`, by normalized name."""
    versions = {}
    for entry in _description_names(directory, modified):
        if entry.endswith(_SUFFIX):
            # From the right: versions have no hyphen, names may.
            name, _, version = entry.removesuffix(_SUFFIX).rpartition("-")
            versions[normalized_name(name)] = version, os.path.join(directory, entry)
    return versions


@lru_cache(maxsize=64)
def _entry_points_in(
    directory: str, modified: int, group: str
) -> tuple[tuple[str, tuple[EntryPoint, ...]], ...]:
    """Return the entry points of a group for each distribution in a directory of `sys.path`, by the
    normalized names of the distributions; also of distributions that have none, which hide later ones."""
    return tuple(
        (name, tuple(EntryPoint(*point, name) for point in _points_in_text(text, group).items()))
        for name, text in _entry_point_texts(directory, modified)
    )


@lru_cache(maxsize=64)
def _entry_point_texts(directory: str, modified: int) -> tuple[tuple[str, str], ...]:
    """Return the normalized name of each distribution in a directory of `sys.path`, and the text of its entry
    points: of all groups, since a process needs two."""
    distributions = (
        InstalledDistribution(name, *version)
        for name, version in _versions(directory, modified).items()
    )
    return tuple(
        (distribution.name, distribution.read("entry_points.txt") or "")
        for distribution in distributions
    )


def _has_other_finders() -> bool:
    """Return whether distributions may be installed elsewhere than on `sys.path`."""
    return any(
        finder is not PathFinder and hasattr(finder, "find_distributions")
        for finder in sys.meta_path
    )


@lru_cache(maxsize=64)
def _has_other_entry_points(directory: str, modified: int) -> bool:
    """Return whether a place on `sys.path` may have entry points that are not in `.dist-info` folders.

    Systems have many distributions with `.egg-info`, nearly all without entry points: only those with entry
    points cost the import of `importlib.metadata`.
    """
    if directory.endswith(".egg") or os.path.isfile(directory):
        return True
    return any(
        entry.endswith(_OLD_SUFFIX)
        and os.path.exists(os.path.join(directory, entry, "entry_points.txt"))
        for entry in _description_names(directory, modified)
    )


def _entry_points_by_importlib(group: str) -> tuple[EntryPoint, ...]:
    from importlib import metadata  # slow, and almost never needed

    return tuple(
        sorted(
            EntryPoint(
                item.name, item.value, normalized_name(item.dist.name if item.dist else "unknown")
            )
            for item in metadata.entry_points(group=group)
        )
    )
