"""The standard streams of a process, which may be closed or broken pipes."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any


def open_closed_descriptors() -> None:
    """Open the null device for each standard stream that is closed. Otherwise the next file that is opened
    would get its descriptor, and the messages of libraries would be written into that file."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def redirect_to_null(stream: Any) -> None:
    """Redirect a stream to the null device: at exit, Python would write the rest, and fail again."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def print_to_stderr(message: str) -> None:
    """Print to standard error, unless it is closed or a broken pipe."""
    if sys.stderr is not None:
        try:
            print(message, file=sys.stderr, flush=True)
        except OSError:
            redirect_to_null(sys.stderr)


def flush_output() -> None:
    """Write what standard output holds. If that fails, the rest is dropped: at exit, Python would replace the
    exit code by 120."""
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except OSError:
            redirect_to_null(sys.stdout)
