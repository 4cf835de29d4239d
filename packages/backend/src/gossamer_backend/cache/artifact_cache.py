"""Artifacts on disk. The cache never makes a program wrong: an entry that is not intact is a miss.

The directory holds native code, so it is created with mode 0700. A directory that another user may have
chosen (see `gossamer_backend.cache.directory`) is neither read, written nor cleared. A file that belongs to
another user, or that others may write to, is not used. Entries are written to a temporary file and moved into
place, so that neither readers nor killed writers leave incomplete entries.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import warnings
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from gossamer_backend.artifact import Artifact
from gossamer_backend.cache.directory import (
    Directory,
    UnsafeDirectoryError,
    disk_usage,
    open_directory,
    remove_directory,
)
from gossamer_backend.cache.entry import EntryKind, pack_entry, unpack_entry
from gossamer_backend.cache.eviction import COUNTER, reserve_space
from gossamer_backend.cache.safe_files import PARTIAL, read_own_file, replace_file
from gossamer_backend.cache.settings import CACHE_DIR_VARIABLE, default_directory, default_limit
from gossamer_ir.errors import ArgumentError

Cause: TypeAlias = Literal["unusable", "full"]

MAX_LINKS = 2
"""The longest chain of links: from a name to a request, and from the request to an object."""

_KEY = re.compile(r"[0-9a-f]{64}")
_SUFFIX = ".artifact"
_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
_HINTS: dict[Cause, str] = {
    "unusable": f"Set {CACHE_DIR_VARIABLE} to a directory to which only you can write",
    "full": f"Make room, or set {CACHE_DIR_VARIABLE} to a directory elsewhere",
}

_WARNED: dict[tuple[Path, Cause], object] = {}
"""The causes of which this process has warned, each with the object that the first thread stored there."""


class CacheWarning(UserWarning):
    """The cache cannot be used, so kernels are compiled again.

    Given once per process, directory and cause: the directory cannot be read or written, another user may
    have chosen it or may write to it, or its disk is full. It names the line that called gossamer.
    """


class CacheInfo(msgspec.Struct, frozen=True):
    """The path of a cache, its number of entries, the space that it takes on disk, and the limit of that
    space, in bytes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     info = ArtifactCache(directory, limit=1 << 20).info()
    >>> info.entries, info.limit
    (0, 1048576)
    """

    path: str
    entries: int
    bytes: int
    limit: int


class ArtifactCache:
    """Artifacts by key, in a directory (None: `default_directory()`) that takes at most `limit` bytes on disk
    (None: `default_limit()`). The least recently used entries are removed before it would take more.

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
        """Return the artifact of a key, following at most MAX_LINKS links, or None if none is intact."""
        _require_key(key)
        directory = self._open_for_reading()
        if directory is None:
            return None
        with directory:
            keys, data = self._follow(directory, key)
            if data is None:
                # The chain ends nowhere, so each look-up would follow the links that lead there in vain.
                for link in keys[:-1]:
                    directory.remove(link + _SUFFIX)
                return None
            try:
                return Artifact.decode(data)
            except ArgumentError:
                directory.remove(keys[-1] + _SUFFIX)
                return None

    def put(self, key: str, artifact: Artifact) -> None:
        """Store an artifact; warn (`CacheWarning`) if that is impossible."""
        _require_key(key)
        self._write(key, "artifact", payload=artifact.encode())

    def put_link(self, key: str, other: str) -> None:
        """Make `get(key)` return the same artifact as `get(other)`."""
        _require_key(key)
        _require_key(other)
        self._write(key, "link", payload=other.encode())

    def discard(self, key: str) -> None:
        """Remove an entry and the entries that it links to."""
        _require_key(key)
        directory = self._open_for_reading()
        if directory is None:
            return
        with directory:
            for entry_key in self._follow(directory, key)[0]:
                directory.remove(entry_key + _SUFFIX)

    def info(self) -> CacheInfo:
        """Return the path, space on disk and limit of the cache."""
        entries = space = 0
        directory = self._open_for_reading()
        if directory is not None:
            with directory:
                space = directory.space()
                for name, status in directory.files():
                    entries += name.endswith(_SUFFIX)
                    space += disk_usage(status)
        return CacheInfo(str(self.path), entries, space, self.limit)

    def clear(self) -> int:
        """Remove all entries, the temporary files of killed writers, and the directory if nothing else is in
        it; return the number of entries."""
        directory = self._open_for_reading()
        if directory is None:
            return 0
        with directory:
            names = [name for name, _ in directory.files()]
            entries = [name for name in names if name.endswith(_SUFFIX)]
            partial = [name for name in names if name.endswith(PARTIAL)]
            for name in (*entries, *partial, COUNTER):
                directory.remove(name)
        # Some file systems never shrink a directory that held many files.
        with contextlib.suppress(OSError, UnsafeDirectoryError):
            remove_directory(self.path)
        return len(entries)

    def _open_for_reading(self) -> Directory | None:
        """Return the directory for reading, or None, with a warning unless it is missing."""
        try:
            return open_directory(self.path)
        except FileNotFoundError:
            return None
        except UnsafeDirectoryError as error:
            self._warn(str(error), cause="unusable")
        except OSError as error:
            self._warn(f"{self.path} cannot be read: {error.strerror}", cause="unusable")
        return None

    def _follow(self, directory: Directory, key: str) -> tuple[list[str], bytes | None]:
        """Return the chain of keys from one to an artifact, and its bytes; None if the chain is broken."""
        keys, entry = [key], self._read(directory, key)
        while entry is not None and entry[0] == "link" and len(keys) <= MAX_LINKS:
            keys.append(entry[1].decode("ascii"))
            entry = self._read(directory, keys[-1])
        return keys, entry[1] if entry is not None and entry[0] == "artifact" else None

    def _read(self, directory: Directory, key: str) -> tuple[EntryKind, bytes] | None:
        name = key + _SUFFIX
        try:
            data = read_own_file(directory, name)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:  # a symbolic link: the cache never creates one
                directory.remove(name)
            else:
                reason = f"{self.path / name} cannot be read: {error.strerror}"
                self._warn(reason, cause="unusable")
            return None
        entry = None if data is None else unpack_entry(key, data)
        if entry is None:
            directory.remove(name)
        return entry

    def _write(self, key: str, kind: EntryKind, *, payload: bytes) -> None:
        data = pack_entry(key, kind, payload=payload)
        # It would evict everything else and still not fit.
        if len(data) > self.limit:
            return
        try:
            try:
                self._store(key, data)
            except FileNotFoundError:  # Another process has removed the directory meanwhile.
                self._store(key, data)
        except UnsafeDirectoryError as error:
            self._warn(str(error), cause="unusable")
        except OSError as error:
            cause: Cause = "full" if error.errno in _FULL else "unusable"
            self._warn(f"{self.path} cannot be written: {error.strerror}", cause=cause)

    def _store(self, key: str, data: bytes) -> None:
        with open_directory(self.path, create=True) as directory:
            if reserve_space(directory, len(data), suffix=_SUFFIX, limit=self.limit):
                replace_file(directory, key + _SUFFIX, data)

    def _warn(self, reason: str, *, cause: Cause) -> None:
        mine = object()
        # setdefault is atomic, so exactly one thread finds its own object.
        if _WARNED.setdefault((self.path, cause), mine) is mine:
            message = f"The kernel cache is not used: {reason}. {_HINTS[cause]}."
            warnings.warn(message, CacheWarning, stacklevel=_level_of_the_caller())


def _level_of_the_caller() -> int:
    """Return the `stacklevel` for warnings: the frame of the innermost caller outside gossamer and its
    plugins."""
    import inspect  # only where there is something to warn of

    level, frame = 0, inspect.currentframe()
    while frame is not None and _is_ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    return level


def _is_ours(module_name: str) -> bool:
    package = module_name.partition(".")[0]
    return package == "gossamer" or package.startswith("gossamer_")


def _require_key(key: str) -> None:
    if _KEY.fullmatch(key) is None:
        raise ArgumentError(
            "cache.key", f"'{key}' is not a cache key; expected 64 hexadecimal digits."
        )


def _absolute(path: Path) -> Path:
    try:
        return path.absolute()
    except FileNotFoundError:  # The working directory was removed.
        return path
