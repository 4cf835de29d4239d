"""Fresh processes, for what a process does only once."""

from __future__ import annotations

import os
import subprocess


class ProcessError(Exception):
    """A fresh process failed; the text holds what it said."""


def run_fresh(*command: str, **environment: str) -> str:
    """What a process with these further variables prints; `ProcessError` when it fails."""
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ProcessError(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stdout
