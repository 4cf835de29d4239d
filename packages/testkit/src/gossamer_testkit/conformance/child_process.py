"""The child process, `python -m gossamer_testkit.conformance.child_process ANSWERS`, with its task on stdin.

It writes one line of JSON for each name as soon as that is done. If the process crashes, the last line
shows which name it was working on.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import pickle
import sys
from collections.abc import Callable
from typing import Any

from gossamer_backend import Backend
from gossamer_ir.errors import GossamerError
from gossamer_ir.interchange.records import Target
from gossamer_testkit.conformance.bad_modules import BAD_MODULES
from gossamer_testkit.conformance.fingerprint import fingerprint
from gossamer_testkit.corpus.program import corpus_program


def main() -> None:
    """Run the task for each name and write the answers."""
    payload = pickle.load(sys.stdin.buffer)
    sys.path[:] = payload["path"]
    # Before the backend is unpickled, which needs its class.
    _import(*payload["home"])
    how, data = payload["backend"]
    instance_or_factory = pickle.loads(data)
    backend: Backend = instance_or_factory if how == "instance" else instance_or_factory()
    task, target = TASKS[payload["task"]], Target.parse(payload["target"])
    with open(sys.argv[1], "w") as answers:
        for name in payload["names"]:
            answers.write(json.dumps((name, task(backend, target, name))) + "\n")
            answers.flush()
            # At once: a crash at the next name must not lose this answer.
            os.fsync(answers.fileno())


def _import(name: str, file: str) -> None:
    """Import a module by its name; if that fails, from its file."""
    try:
        importlib.import_module(name)
    except ImportError:
        spec = importlib.util.spec_from_file_location(name, file)
        if spec is None or spec.loader is None:
            raise
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


def _fingerprint(backend: Backend, target: Target, name: str) -> str:
    """Return the fingerprint of a program of the corpus."""
    return fingerprint(backend.compile(corpus_program(name).module, target))


def _refusal(backend: Backend, target: Target, name: str) -> str:
    """Return `refused`, `accepted`, or the exception raised instead of a gossamer error."""
    try:
        backend.compile(BAD_MODULES[name](), target)
    except GossamerError:
        return "refused"
    except (Exception, SystemExit) as error:  # noqa: BLE001  (whatever a backend raises is the answer)
        return f"{type(error).__name__}: {error}"[:500]
    return "accepted"


TASKS: dict[str, Callable[[Backend, Target, str], Any]] = {
    "fingerprint": _fingerprint,
    "refusal": _refusal,
}


if __name__ == "__main__":
    main()
