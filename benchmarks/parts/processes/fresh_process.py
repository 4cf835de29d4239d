"""Fresh processes, to measure work that a process does only once."""

from __future__ import annotations

import os
import subprocess

from benchmarks.part import PartError

USER = {"PYTHONDONTWRITEBYTECODE": ""}
"""Set to what it is for a user: without stored bytecode, each process would compile all modules again."""


class ProcessError(PartError):
    """A fresh process failed; the message holds its standard error."""


def run_fresh(*command: str, **environment: str) -> str:
    """Return the output of a process with further environment variables. Raises `ProcessError`."""
    done = subprocess.run(
        command,
        env={**os.environ, **USER, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ProcessError(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stdout
