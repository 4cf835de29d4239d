"""Artifacts on disk. The cache never makes a program wrong: an entry that is not intact is a miss.

The directory holds native code, so it is created with mode 0700. A directory or a file that belongs to
another user, or that others may write to, is not used. Entries are written to a temporary file and moved into
place, so that neither readers nor killed writers leave incomplete entries.
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
"""The longest chain of links: from a name to a request, and from the request to an object."""

_KEY = re.compile(r"[0-9a-f]{64}")
_SUFFIX = ".artifact"
_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
_HINTS: dict[Cause, str] = {
    "unusable": f"Set {VARIABLE} to a directory of your own",
    "full": f"Make room, or set {VARIABLE} to a directory elsewhere",
}

_WARNED: dict[tuple[Path, Cause], object] = {}
"""The causes of which this process has warned, each with the object that the first thread stored there."""


class CacheWarning(UserWarning):
    """The cache cannot be used, so kernels are compiled again.

    Given once per process, directory and cause: the directory cannot be read or written, others may write to
    it, or its disk is full.
    """


class CacheInfo(msgspec.Struct, frozen=True):
    """The path of a cache, its number of entries, their size and the limit of that size, in bytes."""

    path: str
    entries: int
    bytes: int
    limit: int


class ArtifactCache:
    """Artifacts by key, in a directory (None: `default_directory()`) of at most `limit` bytes (None:
    `default_limit()`). If the limit is exceeded, the least recently used entries are removed.

    Any number of processes and threads may use one directory at once. Raises `ArgumentError`
    (`cache.directory`, `cache.limit`) for invalid values of environment variables.

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
        """Return the artifact of a key, following at most MOST_LINKS links, or None if none is intact."""
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
        """Store an artifact; warn (`CacheWarning`) if that is impossible."""
        self._write(key, "artifact", payload=artifact.encode())

    def put_link(self, key: str, other: str) -> None:
        """Make `get(key)` return the same artifact as `get(other)`."""
        self._write(_require_key(key), "link", payload=_require_key(other).encode())

    def discard(self, key: str) -> None:
        """Remove an entry and the entries that it links to."""
        for found in self._follow(key)[0]:
            remove(self._file(found))

    def info(self) -> CacheInfo:
        """Return the path, size and limit of the cache."""
        sizes = [status.st_size for _, status in files_of(self.path, _SUFFIX)]
        return CacheInfo(str(self.path), len(sizes), sum(sizes), self.limit)

    def clear(self) -> int:
        """Remove all entries and the temporary files of killed writers; return the number of entries."""
        entries = [path for path, _ in files_of(self.path, _SUFFIX)]
        partial = [path for path, _ in files_of(self.path, PARTIAL)]
        for path in (*entries, *partial, self.path / COUNTER):
            remove(path)
        return len(entries)

    def _file(self, key: str) -> Path:
        return self.path / (_require_key(key) + _SUFFIX)

    def _follow(self, key: str) -> tuple[list[str], bytes | None]:
        """Return the chain of keys from one to an artifact, and its bytes; None if the chain is broken."""
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
            if error.errno == errno.ELOOP:  # a symbolic link: the cache never creates one
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
            ):  # Another process has removed the directory meanwhile.
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
            "cache.key", f"'{key}' is not a cache key, expected 64 hexadecimal digits."
        )
    return key


def _absolute(path: Path) -> Path:
    try:
        return path.absolute()
    except FileNotFoundError:  # The working directory was removed.
        return path
