"""Versions of installed distributions, for cache keys."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from collections.abc import Iterable, Iterator
from functools import cache

from gossamer_support.plugins.installed_distributions import (
    EntryPoint,
    InstalledDistribution,
    installed_distribution,
)
from gossamer_support.typed_calls import typed


@typed
def package_versions(distributions: Iterable[str]) -> dict[str, str]:
    """Return the version of each installed distribution; missing ones are left out.

    A distribution that was not installed from an index may change without a new version. Its version is
    followed by a digest of the installed files or, for an editable installation, of the names, sizes and
    times of its source files.

    >>> list(package_versions(["gossamer-ir", "no-such-distribution"]))
    ['gossamer-ir']
    """
    versions = {}
    for name in distributions:
        distribution = installed_distribution(name)
        if distribution is not None:
            suffix = _content_suffix(distribution, package=name.replace("-", "_"))
            versions[name] = distribution.version + suffix
        elif (version := _other_version(name)) is not None:
            versions[name] = version
    return versions


@cache
def combined_version(distribution: str, *others: str) -> str:
    """Return the version of a distribution with those of others that it needs, as in `package_versions`: the
    version of a backend. It is found once in a process.

    >>> combined_version("msgspec", "numpy").split()[1:3]
    ['with', 'numpy']
    """
    first, *rest = package_versions((distribution, *others)).items()
    return f"{first[1]} with {', '.join(' '.join(other) for other in rest)}"


def extension_versions(points: Iterable[EntryPoint]) -> dict[str, str]:
    """Return the versions of extensions by the names of their entry points: of their distributions, as in
    `package_versions`.

    >>> extension_versions([EntryPoint("toy.fast", "toy_fast", "no-such-distribution")])
    {'toy.fast': 'toy_fast'}
    """
    versions = {}
    for point in points:
        distribution = installed_distribution(point.distribution)
        if distribution is None:
            version = _other_version(point.distribution)
            versions[point.name] = point.value if version is None else f"{point.value} {version}"
        else:
            # The package of an extension need not have the name of its distribution.
            package = point.value.partition(":")[0].partition(".")[0]
            suffix = _content_suffix(distribution, package=package)
            versions[point.name] = f"{point.value} {distribution.version}{suffix}"
    return versions


def _other_version(name: str) -> str | None:
    """Return the version of a distribution that only importlib.metadata finds; None if it finds none."""
    from importlib import metadata  # slow, and almost never needed

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _content_suffix(distribution: InstalledDistribution, *, package: str) -> str:
    """Return a suffix that differs between installations of one version; "" for one from an index (PEP
    610). `package` is the one that an editable installation is edited in."""
    origin = distribution.read("direct_url.json")
    if not origin:
        return ""
    if json.loads(origin).get("dir_info", {}).get("editable"):
        return _source_suffix(package)
    record = distribution.read("RECORD") or ""  # a distribution may be installed without the list
    return "+local." + hashlib.sha256(record.encode()).hexdigest()[:16]


def _source_suffix(package: str) -> str:
    spec = importlib.util.find_spec(package)
    if spec is None:
        return ""
    folders, origin = spec.submodule_search_locations, spec.origin or ""
    files = _source_files(folders[0]) if folders else [(origin, os.stat(origin))]
    lines = [f"{path} {status.st_size} {status.st_mtime_ns}\n" for path, status in files]
    return "+edited." + hashlib.sha256("".join(lines).encode()).hexdigest()[:16]


def _source_files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the name and the status of each source file of a folder and its subfolders, in a fixed order.
    Each process does this before its first kernel: `Path.rglob` takes five times as long."""
    with os.scandir(folder) as entries:
        ordered = sorted(entries, key=lambda entry: entry.name)
    for entry in ordered:
        if entry.name.endswith(".py"):
            yield entry.name, entry.stat()
        elif entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
            yield from _source_files(entry.path)
