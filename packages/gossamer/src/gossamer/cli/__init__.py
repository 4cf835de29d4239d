"""The command line: `gossamer --version`, or a command (`demo`, `run`, `show`, ...)."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from gossamer_ir.errors import CodedError

BAD_INPUT, INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 1 if a check failed, 2 for bad input.

    Bad input is reported by one sentence on standard error, followed by the text with carets if there is one.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            return _run(sys.argv[1:] if arguments is None else arguments)
    except CodedError as error:
        return _fail(str(error).removesuffix(error.text), text=error.text)
    except OSError as error:
        _discard_output()
        return _fail(f"The output cannot be written: {error.strerror or error}.")
    except MemoryError as error:
        return _fail(f"There is not enough memory: {error or 'an array cannot be allocated'}.")
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        return _fail(_bad_usage(error))


def _run(arguments: Sequence[str]) -> int:
    from typer.main import get_command

    from gossamer.cli.app import app

    status = get_command(app).main(list(arguments), prog_name="gossamer", standalone_mode=False)
    sys.stdout.flush()
    return status if isinstance(status, int) else 0


def _bad_usage(error: Any) -> str:
    """Return the message of an error of typer. Its versions have no common public class for these errors, but
    all of them have `format_message`, and `ctx` if the command is known."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "gossamer"
    return f"{error.format_message().rstrip('.')}; see {command} --help."


def _discard_output() -> None:
    """Redirect standard output to the null device: at exit, Python would write the rest, and fail again."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, *, text: str = "") -> int:
    print(f"error: {' '.join(message.splitlines())}", file=sys.stderr)
    if text:
        print(text, file=sys.stderr)
    return BAD_INPUT


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"warning: {message}", file=sys.stderr)
