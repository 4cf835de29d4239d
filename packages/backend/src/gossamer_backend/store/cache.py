"""Artifacts on disk. A cache never makes a program wrong: what is not intact is a miss.

The directory holds native code, so it is made with mode 0700, and one that belongs to another user
or that others may write to is not used; the same holds for each file. Entries are written to a
temporary file and moved into place, so that readers and a killed writer never leave half an entry.
"""

from __future__ import annotations

import errno
import os
import re
import warnings
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from gossamer_backend.artifact import Artifact
from gossamer_backend.store.entry import Kind, pack, unpack
from gossamer_backend.store.eviction import COUNTER, account
from gossamer_backend.store.files import (
    PARTIAL,
    files_of,
    is_foreign,
    read_own_file,
    remove,
    replace,
)
from gossamer_backend.store.settings import VARIABLE, default_directory, default_limit
from gossamer_ir.errors import ArgumentError

Cause: TypeAlias = Literal["unusable", "full"]

MOST_LINKS = 2
"""From a name to a request, from there to an object."""

_KEY = re.compile(r"[0-9a-f]{64}")
_SUFFIX = ".artifact"
_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
_HINTS: dict[Cause, str] = {
    "unusable": f"Set {VARIABLE} to a directory of your own",
    "full": f"Make room, or set {VARIABLE} to a directory elsewhere",
}

_WARNED: dict[tuple[Path, Cause], object] = {}
"""Of what this process has warned already; each with what only the first to say so has put there."""


class CacheWarning(UserWarning):
    """The cache cannot be used, or not be written to; everything works without it, slower.

    Given once per process, directory and cause: it cannot be used (as it cannot be read or written,
    or others may write to it), or its disk is full.
    """


class CacheInfo(msgspec.Struct, frozen=True):
    """Where a cache is, how many entries it has, their size, and the size it may have."""

    path: str
    entries: int
    bytes: int
    limit: int


class ArtifactCache:
    """Artifacts by key, in a directory (None: `default_directory()`) of at most `limit` bytes (None:
    `default_limit()`). Beyond, the entries that were used longest ago are removed.

    Any number of processes and threads may use one directory at once. Raises `ArgumentError`
    (`cache.directory`, `cache.limit`) where the environment says something impossible.

    >>> import tempfile
    >>> from gossamer_ir.interchange.records import Signature
    >>> artifact = Artifact("toy", "1.0", "toy", Signature("f", (), (), ()), b"code")
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     cache = ArtifactCache(directory)
    ...     cache.put("0" * 64, artifact)
    ...     cache.put_link("1" * 64, "0" * 64)
    ...     cache.get("1" * 64) == artifact, cache.info().entries, cache.clear()
    (True, 2, 2)
    """

    def __init__(
        self, directory: str | os.PathLike[str] | None = None, *, limit: int | None = None
    ) -> None:
        base = Path(directory) if directory is not None else default_directory()
        self.path = _absolute(base) / "v1"
        self.limit = default_limit() if limit is None else limit

    def get(self, key: str) -> Artifact | None:
        """The artifact of a key, through at most MOST_LINKS links; None where there is no intact one."""
        keys, data = self._follow(key)
        if data is None:
            for link in keys[:-1]:
                remove(self._file(link))
            return None
        try:
            return Artifact.decode(data)
        except ArgumentError:
            remove(self._file(keys[-1]))
            return None

    def put(self, key: str, artifact: Artifact) -> None:
        """Stores an artifact; where that is impossible, warns (`CacheWarning`)."""
        self._write(key, "artifact", payload=artifact.encode())

    def put_link(self, key: str, other: str) -> None:
        """Makes `get(key)` return what `get(other)` returns."""
        self._write(_require_key(key), "link", payload=_require_key(other).encode())

    def discard(self, key: str) -> None:
        """Removes an entry, and what it links to."""
        for found in self._follow(key)[0]:
            remove(self._file(found))

    def info(self) -> CacheInfo:
        """What is there."""
        sizes = [status.st_size for _, status in files_of(self.path, _SUFFIX)]
        return CacheInfo(str(self.path), len(sizes), sum(sizes), self.limit)

    def clear(self) -> int:
        """Removes all entries and what killed writers left; returns how many entries there were."""
        entries = [path for path, _ in files_of(self.path, _SUFFIX)]
        partial = [path for path, _ in files_of(self.path, PARTIAL)]
        for path in (*entries, *partial, self.path / COUNTER):
            remove(path)
        return len(entries)

    def _file(self, key: str) -> Path:
        return self.path / (_require_key(key) + _SUFFIX)

    def _follow(self, key: str) -> tuple[list[str], bytes | None]:
        """The keys from one to an artifact, and its bytes; None where they lead to none."""
        keys, found = [key], self._read(key)
        while found is not None and found[0] == "link" and len(keys) <= MOST_LINKS:
            keys.append(found[1].decode("ascii"))
            found = self._read(keys[-1])
        return keys, found[1] if found is not None and found[0] == "artifact" else None

    def _read(self, key: str) -> tuple[Kind, bytes] | None:
        path = self._file(key)
        try:
            data = read_own_file(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:  # a symbolic link, which nobody put there for good
                remove(path)
            else:
                self._warn(f"{path} cannot be read: {error.strerror}", cause="unusable")
            return None
        found = None if data is None else unpack(key, data)
        if found is None:
            remove(path)
        return found

    def _write(self, key: str, kind: Kind, *, payload: bytes) -> None:
        path, data = self._file(key), pack(key, kind, payload=payload)
        if len(data) > self.limit:
            return
        try:
            try:
                self._store(path, data)
            except (
                FileNotFoundError,
                FileExistsError,
            ):  # Somebody removed the directory meanwhile.
                self._store(path, data)
        except OSError as error:
            cause: Cause = "full" if error.errno in _FULL else "unusable"
            self._warn(f"{path.parent} cannot be written: {error.strerror}", cause=cause)

    def _store(self, path: Path, data: bytes) -> None:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if is_foreign(self.path.stat()):
            reason = f"{self.path} belongs to another user or is writable by others"
            self._warn(reason, cause="unusable")
            return
        replace(path, data)
        account(self.path, len(data), suffix=_SUFFIX, limit=self.limit)

    def _warn(self, reason: str, *, cause: Cause) -> None:
        mine = object()
        if _WARNED.setdefault((self.path, cause), mine) is mine:
            message = f"The kernel cache is not used: {reason}. {_HINTS[cause]}."
            warnings.warn(message, CacheWarning, stacklevel=4)


def _require_key(key: str) -> str:
    if _KEY.fullmatch(key) is None:
        raise ArgumentError(
            "cache.key", f"'{key}' is no cache key, expected 64 hexadecimal digits."
        )
    return key


def _absolute(path: Path) -> Path:
    try:
        return path.absolute()
    except FileNotFoundError:  # The working directory was removed.
        return path
