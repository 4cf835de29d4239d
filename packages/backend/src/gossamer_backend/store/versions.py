"""Versions of installed distributions, for cache keys."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Iterable
from pathlib import Path

from gossamer_backend.registry.discovery import Installed, installed_distribution
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
                "" if distribution is None else _content_suffix(distribution)
            )
    return versions


def _other_version(name: str) -> str:
    """Return the version of a distribution that only importlib.metadata finds, or ""."""
    from importlib import metadata  # slow, and almost never needed

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _content_suffix(distribution: Installed) -> str:
    """Return a suffix that differs between installations of one version; "" for one from an index (PEP
    610)."""
    origin = distribution.read("direct_url.json")
    if not origin:
        return ""
    if json.loads(origin).get("dir_info", {}).get("editable"):
        return _source_digest(distribution.name.replace("-", "_"))
    return "+local." + hashlib.sha256(distribution.read("RECORD").encode()).hexdigest()[:16]


def _source_digest(package: str) -> str:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return ""
    digest = hashlib.sha256()
    for path in sorted(Path(spec.submodule_search_locations[0]).rglob("*.py")):
        status = path.stat()
        digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return "+edited." + digest.hexdigest()[:16]
