"""Work on a backend in a process of its own, which may end however it likes."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gossamer_backend import Backend
from gossamer_testkit.conformance.base import fail

SECONDS = 600
SEED = "4711"
"""For the hashes of text in the other process."""


def in_another_process(
    backend: Backend, target: str, *, task: str, names: Sequence[str]
) -> dict[str, str]:
    """What `child.TASKS[task]` answers for each name; a failed check where the process dies.

    The process gets a copy of the backend (pickled, else made anew without arguments) and the same
    path for imports.
    """
    payload = {
        "path": sys.path,
        "home": _home(type(backend)),
        "backend": _pickled(backend),
        "target": target,
        "task": task,
        "names": list(names),
    }
    with tempfile.TemporaryDirectory() as directory:
        answers = Path(directory) / "answers"
        done = subprocess.run(
            [sys.executable, "-m", "gossamer_testkit.conformance.child", str(answers)],
            input=pickle.dumps(payload),
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": SEED},
            timeout=SECONDS,
            check=False,
        )
        lines = answers.read_text().splitlines() if answers.exists() else []
    found: dict[str, str] = dict(json.loads(line) for line in lines)
    if done.returncode or len(found) < len(names):
        at = next((name for name in names if name not in found), "the end")
        told = done.stderr.decode(errors="replace").strip()[-2000:]
        fail(f"The process ended with code {done.returncode} at {at}: {told or 'no message'}")
    return found


def _home(kind: type[Any]) -> tuple[str, str]:
    """The module of a class and its file, which need not be found under its name."""
    return kind.__module__, getattr(sys.modules[kind.__module__], "__file__", None) or ""


def _pickled(backend: Backend) -> tuple[str, bytes]:
    try:
        return "instance", pickle.dumps(backend)
    except (pickle.PicklingError, TypeError, AttributeError):
        return "class", pickle.dumps(type(backend))
