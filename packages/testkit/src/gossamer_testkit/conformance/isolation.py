"""Runs a task on a backend in a child process, which may crash without ending the tests."""

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

TIMEOUT_SECONDS = 600
SEED = "4711"
"""The hash seed of the child process."""


def in_another_process(
    backend: Backend, target: str, *, task: str, names: Sequence[str]
) -> dict[str, str]:
    """Return the answer of `child.TASKS[task]` for each name; fail the test if the process crashes.

    The process gets a copy of the backend, and the same import path. A backend that cannot be pickled is
    constructed again, without arguments.
    """
    payload = {
        "path": sys.path,
        "home": _home(type(backend)),
        "backend": _pickle(backend),
        "target": target,
        "task": task,
        "names": list(names),
    }
    with tempfile.TemporaryDirectory() as directory:
        answers = Path(directory) / "answers"
        done = subprocess.run(
            # Answers are in a file: it is there after a crash, and no output of the backend disturbs it.
            [sys.executable, "-m", "gossamer_testkit.conformance.child_process", str(answers)],
            input=pickle.dumps(payload),
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": SEED},
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        lines = answers.read_text().splitlines() if answers.exists() else []
    fingerprints: dict[str, str] = dict(json.loads(line) for line in lines)
    if done.returncode or len(fingerprints) < len(names):
        first = next((name for name in names if name not in fingerprints), "the end")
        message = done.stderr.decode(errors="replace").strip()[-2000:]
        fail(f"The process ended with code {done.returncode} at {first}: {message or 'no message'}")
    return fingerprints


def _home(kind: type[Any]) -> tuple[str, str]:
    """Return the name and the file of a class's module, which may not be importable by its name."""
    return kind.__module__, getattr(sys.modules[kind.__module__], "__file__", None) or ""


def _pickle(backend: Backend) -> tuple[str, bytes]:
    try:
        return "instance", pickle.dumps(backend)
    except (pickle.PicklingError, TypeError, AttributeError):
        return "class", pickle.dumps(type(backend))
