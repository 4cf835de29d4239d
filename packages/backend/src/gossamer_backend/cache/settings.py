"""The directory of the cache and its size limit, from environment variables or defaults."""

from __future__ import annotations

import os
from pathlib import Path

from gossamer_ir.errors import ArgumentError

CACHE_DIR_VARIABLE = "GOSSAMER_CACHE_DIR"
CACHE_LIMIT_VARIABLE = "GOSSAMER_CACHE_LIMIT"
MEGABYTE = 1_000_000
# Room for some ten thousand kernels of a few dozen kilobytes. It was chosen, not measured.
DEFAULT_LIMIT = 512 * MEGABYTE
# A petabyte. int() of a string of 4,300 digits or more raises an error of its own.
_MAX_DIGITS = 9


def default_directory() -> Path:
    """Return GOSSAMER_CACHE_DIR, by default the user's cache directory of this platform.

    For a user without a home directory, it is in the directory for temporary files.
    """
    chosen = os.environ.get(CACHE_DIR_VARIABLE)
    if not chosen:
        return _users_directory() or _temporary_directory()
    try:
        return Path(chosen).expanduser()
    except RuntimeError as error:
        raise ArgumentError(
            "cache.directory",
            f"The environment variable {CACHE_DIR_VARIABLE} is '{chosen}', and there is no such user.",
            hint="Set it to a directory of your own.",
        ) from error


def default_limit() -> int:
    """Return the size limit of the cache in bytes: GOSSAMER_CACHE_LIMIT megabytes, by default 512.

    `ArgumentError` (`cache.limit`) if the variable is not a whole number.
    """
    text = os.environ.get(CACHE_LIMIT_VARIABLE, "").strip()
    if not text:
        return DEFAULT_LIMIT
    if not (text.isascii() and text.isdigit()) or len(text) > _MAX_DIGITS:
        raise ArgumentError(
            "cache.limit",
            f"The environment variable {CACHE_LIMIT_VARIABLE} is '{text}', which is not a number of "
            "megabytes.",
            hint="Set it to a whole number such as 512, or to 0 to keep nothing.",
        )
    return int(text) * MEGABYTE


def _users_directory() -> Path | None:
    import platformdirs  # only where nothing was chosen

    try:
        directory = platformdirs.user_cache_path("gossamer")
    except RuntimeError:  # There is no home directory; older platformdirs return a path below "~".
        return None
    return directory if directory.is_absolute() else None


def _temporary_directory() -> Path:
    import tempfile  # only for users without a home directory

    # Any user can create this directory first; the cache does not use what belongs to another user.
    user = os.getuid() if hasattr(os, "getuid") else "user"
    try:
        return Path(tempfile.gettempdir(), f"gossamer-{user}")
    except FileNotFoundError:  # no directory for temporary files is writable
        return Path("/tmp", f"gossamer-{user}")
