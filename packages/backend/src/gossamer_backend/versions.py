"""Versions of installed distributions, for cache keys."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path


def package_versions(distributions: Iterable[str]) -> dict[str, str]:
    """The version of each installed distribution; one that is missing is left out.

    An editable installation changes without a new version, so its version is followed by a digest
    of the names, sizes and times of its source files.

    >>> list(package_versions(["gossamer-ir", "no-such-distribution"]))
    ['gossamer-ir']
    """
    versions = {}
    for name in distributions:
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        edited = _source_digest(name.replace("-", "_")) if _is_editable(found) else ""
        versions[name] = _version_of(found) + edited
    return versions


def _version_of(distribution: metadata.Distribution) -> str:
    """Its version, without parsing the rest of its metadata, which takes ten times as long."""
    text = distribution.read_text("METADATA") or ""
    for line in text.splitlines():
        if line.startswith("Version: "):
            return line.removeprefix("Version: ").strip()
    return distribution.version


def _is_editable(distribution: metadata.Distribution) -> bool:
    text = distribution.read_text("direct_url.json")
    if not text:
        return False
    return bool(json.loads(text).get("dir_info", {}).get("editable"))


def _source_digest(package: str) -> str:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return ""
    digest = hashlib.sha256()
    for path in sorted(Path(spec.submodule_search_locations[0]).rglob("*.py")):
        status = path.stat()
        digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return "+edited." + digest.hexdigest()[:16]
