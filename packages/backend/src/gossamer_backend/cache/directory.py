"""The directory of the cache, opened only where no other user can have chosen it.

Two levels are the cache's own: the directory that the user or the platform names, and `v1` in it. They are
directories of this user (the first one may be root's), not symbolic links, and not writable by others. Levels
above them may be whatever the user has set up, with symbolic links; but what stands in a directory to which
all users may write, such as /tmp, counts only if that directory is sticky and the entry is this user's or
root's. Once the last level is open, files are named relative to its descriptor.

Where files have no owners (Windows), none of this is checked, and files are named by their paths.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePath

HAS_OWNERS = hasattr(os, "geteuid") and os.open in os.supports_dir_fd

MAX_SYMBOLIC_LINKS = 40
"""The number of symbolic links that are followed above the cache, as in Linux."""

# The block of ext4, XFS, APFS and NTFS by default. A file system with larger ones says so by `fstatvfs`.
BLOCK_BYTES = 4096

# O_PATH needs no permission to read, so a home directory that can only be searched works as well.
_SEARCHED = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
_LISTED = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_NOT_FOLLOWED = getattr(os, "O_NOFOLLOW", 0)


class UnsafeDirectoryError(Exception):
    """Another user may have chosen the directory, or may write to it. The text names the level and says
    why."""


class Directory:
    """An open directory. Closed at the end of a `with` statement."""

    def __init__(self, path: Path, descriptor: int | None) -> None:
        self.path = path
        self.descriptor = descriptor

    def __enter__(self) -> Directory:
        return self

    def __exit__(self, *raised: object) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)

    def open(self, name: str, flags: int) -> int:
        """Return a descriptor of a file; symbolic links are not followed. Raise `OSError`."""
        # Opening a named pipe there does not wait.
        flags |= _NOT_FOLLOWED | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        return os.open(self._name(name), flags, 0o600, dir_fd=self.descriptor)

    def rename(self, name: str, new: str) -> None:
        """Rename a file to a name that another one may have, which it then replaces; raise `OSError`."""
        descriptor = self.descriptor
        os.replace(self._name(name), self._name(new), src_dir_fd=descriptor, dst_dir_fd=descriptor)

    def remove(self, name: str) -> bool:
        """Remove a file; return whether it is absent afterward."""
        try:
            os.unlink(self._name(name), dir_fd=self.descriptor)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def files(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield name and status of each file."""
        location = self.path if self.descriptor is None else self.descriptor
        with contextlib.suppress(OSError), os.scandir(location) as entries:
            for item in entries:
                # Another process may remove the entry between the listing and this call.
                with contextlib.suppress(FileNotFoundError):
                    yield item.name, item.stat(follow_symlinks=False)

    def space(self) -> int:
        """Return the space that the list of files itself takes on disk, in bytes."""
        location = self.path if self.descriptor is None else self.descriptor
        return disk_usage(os.stat(location))

    def disk_space(self, size: int) -> int:
        """Return the space that a file of this size is expected to take on disk, in bytes."""
        unit = BLOCK_BYTES
        if self.descriptor is not None:
            unit = max(unit, os.fstatvfs(self.descriptor).f_frsize)
        return -(-size // unit) * unit

    def _name(self, name: str) -> str:
        return name if self.descriptor is not None else os.path.join(self.path, name)


def open_directory(path: Path, *, create: bool = False) -> Directory:
    """Return the directory, opened; with `create`, missing levels are created for their owner only.

    Raises `UnsafeDirectoryError` and `OSError`, `FileNotFoundError` if it is missing.
    """
    if not HAS_OWNERS:
        if create:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Directory(path, None)
    with _first_own_level(path.parent, create=create) as base:
        return Directory(path, _open_level(base, path, flags=_LISTED, create=create))


def remove_directory(path: Path) -> None:
    """Remove the directory if it is empty; raise `UnsafeDirectoryError` and `OSError`."""
    if not HAS_OWNERS:
        os.rmdir(path)
        return
    with _first_own_level(path.parent, create=False) as base:
        os.rmdir(path.name, dir_fd=base)


def is_foreign(status: os.stat_result) -> bool:
    """Return whether a file belongs to another user, or others may write to it."""
    if not HAS_OWNERS:
        return False
    return status.st_uid != os.geteuid() or is_writable_by_others(status)


def is_writable_by_others(status: os.stat_result) -> bool:
    """Return whether the group or all users may write to a file."""
    return bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def disk_usage(status: os.stat_result) -> int:
    """Return the space of a file on disk in bytes: its blocks, and at least its size, since some file systems
    allocate blocks later."""
    blocks = getattr(status, "st_blocks", None)
    if blocks is None:
        return -(-status.st_size // BLOCK_BYTES) * BLOCK_BYTES
    return max(status.st_size, int(blocks) * 512)


@contextlib.contextmanager
def _first_own_level(path: Path, *, create: bool) -> Iterator[int]:
    above = _without_links(path.parent, create=create)
    _require_sticky(os.stat(above), above)
    descriptor = _open_level(above, path, flags=_SEARCHED, create=create)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _without_links(path: Path, *, create: bool) -> str:
    """Return a directory above the cache by a path without symbolic links."""
    directory, names = _path_levels(path)
    directory = directory or os.curdir
    followed = 0
    while names:
        above, entry = os.stat(directory), os.path.join(directory, names.pop())
        _require_sticky(above, directory)
        # lstat: the owner of a symbolic link counts, since that user chose where it leads.
        status = _level_status(entry, create=create)
        if above.st_mode & stat.S_IWOTH and status.st_uid not in (0, os.geteuid()):
            raise UnsafeDirectoryError(f"{entry} belongs to another user")
        if not stat.S_ISLNK(status.st_mode):
            directory = entry
            continue
        # A cycle of links would otherwise be followed forever.
        followed += 1
        if followed > MAX_SYMBOLIC_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        start, more = _path_levels(Path(os.readlink(entry)))
        directory, names = start or directory, names + more
    return directory


def _path_levels(path: PurePath) -> tuple[str, list[str]]:
    """Return the root of a path ("" if it is relative), and its levels, the first one last."""
    return path.anchor, list(path.parts[:0:-1] if path.anchor else path.parts[::-1])


def _require_sticky(status: os.stat_result, path: str) -> None:
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        raise UnsafeDirectoryError(f"{path} is writable by all users, and not sticky")


def _level_status(path: str, *, create: bool) -> os.stat_result:
    """Return the status of a level, which may be a symbolic link; with `create`, it is created if missing."""
    try:
        return os.lstat(path)
    except FileNotFoundError:
        if not create:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    return os.lstat(path)


def _open_level(above: str | int, path: Path, *, flags: int, create: bool) -> int:
    """Return a descriptor of a level of the cache, in a directory without symbolic links."""
    descriptor = above if isinstance(above, int) else None
    name = path.name if isinstance(above, int) else os.path.join(above, path.name)
    try:
        status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except FileNotFoundError:
        if not create:
            raise
        # Another process may create the same level at the same time; what exists then is checked as any
        # level is.
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=descriptor)
        status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        raise UnsafeDirectoryError(f"{path} is a symbolic link")
    _require_own(status, path, is_last=descriptor is not None)
    opened = os.open(name, flags | _NOT_FOLLOWED, dir_fd=descriptor)
    try:  # Again, since the level may have been exchanged meanwhile.
        _require_own(os.fstat(opened), path, is_last=descriptor is not None)
    except BaseException:
        os.close(opened)
        raise
    return opened


def _require_own(status: os.stat_result, path: Path, *, is_last: bool) -> None:
    owners = (os.geteuid(),) if is_last else (0, os.geteuid())
    if status.st_uid not in owners:
        raise UnsafeDirectoryError(f"{path} belongs to another user")
    is_sticky = not is_last and status.st_mode & stat.S_ISVTX
    if is_writable_by_others(status) and not is_sticky:
        raise UnsafeDirectoryError(f"{path} is writable by others")
