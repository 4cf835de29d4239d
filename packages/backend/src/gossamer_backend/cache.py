"""Artifacts on disk. A cache never makes a program wrong: what is not intact is a miss.

The directory holds native code, so it is made with mode 0700, and one that belongs to another user
or that others may write to is not used; the same holds for each file. Entries are written to a
temporary file and moved into place, so that readers and a killed writer never leave half an entry.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import msgspec
import platformdirs

from gossamer_backend.artifact import Artifact
from gossamer_backend.entry import Kind, pack, unpack
from gossamer_ir.errors import ArgumentError

VARIABLE = "GOSSAMER_CACHE_DIR"
_KEY = re.compile(r"[0-9a-f]{64}")
_SUFFIX = ".artifact"
_PARTIAL = ".partial"

_WARNED: set[Path] = set()
"""The directories about which this process has warned already."""


class CacheWarning(UserWarning):
    """The cache cannot be used, or not be written to; everything works without it, slower."""


class CacheInfo(msgspec.Struct, frozen=True):
    """Where a cache is, how many entries it has, and their size."""

    path: str
    entries: int
    bytes: int


def default_directory() -> Path:
    """GOSSAMER_CACHE_DIR, else the user's cache directory of this platform."""
    chosen = os.environ.get(VARIABLE)
    if not chosen:
        return platformdirs.user_cache_path("gossamer")
    try:
        return Path(chosen).expanduser()
    except RuntimeError as error:
        raise ArgumentError(
            "cache.directory",
            f"The environment variable {VARIABLE} is '{chosen}', and there is no such user.",
            hint="Set it to a directory of your own.",
        ) from error


class ArtifactCache:
    """Artifacts by key, in a directory (None: `default_directory()`).

    >>> import tempfile
    >>> from gossamer_ir.contracts import Signature
    >>> artifact = Artifact("toy", "1.0", "toy", Signature("f", (), (), ()), b"code")
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     cache = ArtifactCache(directory)
    ...     cache.put("0" * 64, artifact)
    ...     cache.put_link("1" * 64, "0" * 64)
    ...     cache.get("1" * 64) == artifact, cache.info().entries, cache.clear()
    (True, 2, 2)
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        base = Path(directory) if directory is not None else default_directory()
        self.path = base.absolute() / "v1"

    def get(self, key: str) -> Artifact | None:
        """The artifact of a key, through at most one link; None where there is no intact one."""
        found = self._read(key)
        if found is not None and found[0] == "link":
            key = found[1].decode("ascii")
            found = self._read(key)
        if found is None or found[0] != "artifact":
            return None
        try:
            return Artifact.decode(found[1])
        except ArgumentError:
            self._remove(key)
            return None

    def put(self, key: str, artifact: Artifact) -> None:
        """Stores an artifact; where that is impossible, warns (`CacheWarning`, once per process)."""
        self._write(key, "artifact", payload=artifact.encode())

    def put_link(self, key: str, other: str) -> None:
        """Makes `get(key)` return what `get(other)` returns."""
        self._write(_require_key(key), "link", payload=_require_key(other).encode())

    def info(self) -> CacheInfo:
        """What is there."""
        sizes = [_size(path) for path in self._files(_SUFFIX)]
        return CacheInfo(str(self.path), len(sizes), sum(sizes))

    def clear(self) -> int:
        """Removes all entries and what killed writers left; returns how many entries there were."""
        entries = list(self._files(_SUFFIX))
        for path in (*entries, *self._files(_PARTIAL)):
            with contextlib.suppress(OSError):
                path.unlink()
        return len(entries)

    def _files(self, suffix: str) -> Iterator[Path]:
        with contextlib.suppress(OSError):
            for name in os.listdir(self.path):
                if name.endswith(suffix):
                    yield self.path / name

    def _file(self, key: str) -> Path:
        return self.path / (_require_key(key) + _SUFFIX)

    def _read(self, key: str) -> tuple[Kind, bytes] | None:
        path = self._file(key)
        try:
            data = _read_own_file(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            if _is_symlink(path):
                self._remove(key)
            else:
                self._warn(f"{path} cannot be read: {error.strerror}")
            return None
        found = None if data is None else unpack(key, data)
        if found is None:
            self._remove(key)
        return found

    def _remove(self, key: str) -> None:
        with contextlib.suppress(OSError):
            self._file(key).unlink()

    def _write(self, key: str, kind: Kind, *, payload: bytes) -> None:
        path = self._file(key)
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _is_foreign(self.path.stat()):
                self._warn(f"{self.path} belongs to another user or is writable by others")
                return
            _replace(path, pack(key, kind, payload=payload))
        except OSError as error:
            self._warn(f"{path.parent} cannot be written: {error.strerror}")

    def _warn(self, reason: str) -> None:
        if self.path in _WARNED:
            return
        _WARNED.add(self.path)
        warnings.warn(
            f"The kernel cache is not used: {reason}. Set {VARIABLE} to a directory of your own.",
            CacheWarning,
            stacklevel=4,
        )


def _require_key(key: str) -> str:
    if _KEY.fullmatch(key) is None:
        raise ArgumentError(
            "cache.key", f"'{key}' is no cache key, expected 64 hexadecimal digits."
        )
    return key


def _is_foreign(status: os.stat_result) -> bool:
    if not hasattr(os, "geteuid"):
        return False
    return status.st_uid != os.geteuid() or bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _is_symlink(path: Path) -> bool:
    try:
        return path.is_symlink()
    except OSError:
        return False


def _read_own_file(path: Path) -> bytes | None:
    """The contents of a regular file that only this user can have written, else None."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(os.open(path, flags | getattr(os, "O_BINARY", 0)), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or _is_foreign(status):
            return None
        return file.read()


def _replace(path: Path, data: bytes) -> None:
    # Without fsync: what a power cut leaves fails its checksum.
    descriptor, partial = tempfile.mkstemp(suffix=_PARTIAL, dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
