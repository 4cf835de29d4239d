"""The entry point of the command line: runs a command, and turns errors into messages and exit codes."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Any

from gossamer.cli.streams import (
    flush_output,
    open_closed_descriptors,
    print_to_stderr,
    redirect_to_null,
)
from gossamer_ir.errors import CodedError

# 2 as argparse and click use it, and 128 + SIGINT as shells do.
BAD_INPUT, INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 1 if a check failed, 2 for bad input or for output
    that cannot be written.

    Bad input is reported by one sentence on standard error, followed by the text with carets if there is one.
    """
    open_closed_descriptors()
    if sys.stdout is None:
        return _fail("The output cannot be written: standard output is closed.")
    streams = sys.stdout, sys.stderr
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            return _run(sys.argv[1:] if arguments is None else arguments)
    except CodedError as error:
        return _fail(str(error).removesuffix(error.text), text=error.text)
    except BrokenPipeError:
        # The pipe is closed, as in `gossamer show spmm --stage asm | head`.
        redirect_to_null(sys.stdout)
        return BAD_INPUT
    except SystemExit:
        # On a broken pipe, typer and rich exit with 1, and typer has replaced the streams.
        sys.stdout, sys.stderr = streams
        redirect_to_null(sys.stdout)
        return BAD_INPUT
    except OSError as error:
        redirect_to_null(sys.stdout)
        return _fail(f"The output cannot be written: {error.strerror or error}.")
    except MemoryError as error:
        return _fail(f"There is not enough memory: {error or 'an array cannot be allocated'}.")
    except KeyboardInterrupt:
        return INTERRUPTED
    except _click_exception() as error:
        return _fail(_bad_usage(error))


def _run(arguments: Sequence[str]) -> int:
    from typer.main import get_command

    from gossamer.cli.app import app

    if isinstance(sys.stdout, TextIOWrapper):
        # Paths may have bytes that the locale cannot decode, and the output may be ASCII.
        sys.stdout.reconfigure(errors="backslashreplace")
    status = get_command(app).main(list(arguments), prog_name="gossamer", standalone_mode=False)
    sys.stdout.flush()
    return status if isinstance(status, int) else 0


def _click_exception() -> type[Exception]:
    """Return the base class of the errors that typer raises for bad usage. It is `click.ClickException` or,
    since typer has a copy of click, a private class; `typer.BadParameter` is derived from it in all versions.
    """
    from inspect import getmro

    from typer import BadParameter

    return next(kind for kind in getmro(BadParameter) if kind.__name__ == "ClickException")


def _bad_usage(error: Any) -> str:
    """Return the message of an error of typer; the error has `ctx` if the command is known."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "gossamer"
    return f"{error.format_message().rstrip('.')}; see {command} --help."


def _fail(message: str, *, text: str | None = None) -> int:
    print_to_stderr(f"error: {' '.join(message.splitlines())}")
    if text:
        print_to_stderr(text)
    flush_output()
    return BAD_INPUT


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print_to_stderr(f"warning: {message}")
