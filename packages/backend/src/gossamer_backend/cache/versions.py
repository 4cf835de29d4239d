"""Versions of installed distributions, for cache keys."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Iterable
from pathlib import Path

from gossamer_ir.plugins.installed_distributions import (
    EntryPoint,
    Installed,
    installed_distribution,
)
from gossamer_ir.support.typed_calls import typed


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
        version = _other_version(name) if distribution is None else distribution.version
        if version:
            versions[name] = version + (
                ""
                if distribution is None
                else _content_suffix(distribution, package=name.replace("-", "_"))
            )
    return versions


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
            versions[point.name] = f"{point.value} {_other_version(point.distribution)}".rstrip()
        else:
            # The package of an extension need not have the name of its distribution.
            package = point.value.partition(":")[0].partition(".")[0]
            suffix = _content_suffix(distribution, package=package)
            versions[point.name] = f"{point.value} {distribution.version}{suffix}"
    return versions


def _other_version(name: str) -> str:
    """Return the version of a distribution that only importlib.metadata finds, or ""."""
    from importlib import metadata  # slow, and almost never needed

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _content_suffix(distribution: Installed, *, package: str) -> str:
    """Return a suffix that differs between installations of one version; "" for one from an index (PEP
    610). `package` is the one that an editable installation is edited in."""
    origin = distribution.read("direct_url.json")
    if not origin:
        return ""
    if json.loads(origin).get("dir_info", {}).get("editable"):
        return _source_digest(package)
    return "+local." + hashlib.sha256(distribution.read("RECORD").encode()).hexdigest()[:16]


def _source_digest(package: str) -> str:
    spec = importlib.util.find_spec(package)
    if spec is None:
        return ""
    folders = spec.submodule_search_locations
    files = sorted(Path(folders[0]).rglob("*.py")) if folders else [Path(spec.origin or "")]
    digest = hashlib.sha256()
    for path in files:
        status = path.stat()
        digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return "+edited." + digest.hexdigest()[:16]
