"""Runs machine code in a separate process; a crash is a finding, not the end of the run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Self

import numpy as np

from gossamer_ir.interchange.serialization import dumps, loads
from gossamer_ir.nodes import Module

TIMEOUT_SECONDS = 30.0
"""Seconds after which a program counts as hanging."""


@dataclass(frozen=True)
class Outcome:
    """The failure, or the code of the error that ends the program, or the arrays."""

    what: str | None = None
    code: str | None = None
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)


class NativeProcess:
    """A process that compiles and runs flat modules; it is replaced if it crashes. It may have one of
    `broken_code.DEFECTS`."""

    def __init__(self, defect: int | None = None) -> None:
        self._defect = [] if defect is None else [str(defect)]
        self._start()

    def _start(self) -> None:
        self._pipe, other = Pipe()
        command = [
            sys.executable,
            "-m",
            "tests.fuzzing.lowered.native_process",
            f"{other.fileno()}",
        ]
        self._process = subprocess.Popen([*command, *self._defect], pass_fds=[other.fileno()])
        other.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process."""
        self._pipe.close()
        self._process.kill()
        self._process.wait()

    def run(
        self, flat: Module, arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int | float]
    ) -> Outcome:
        """The arrays after a run of the machine code of a module, on one thread and on two."""
        try:
            self._pipe.send((dumps(flat), dict(arrays), dict(sizes)))
            if not self._pipe.poll(TIMEOUT_SECONDS):
                return self._restarted(f"takes longer than {TIMEOUT_SECONDS:.0f} s")
            outcome: Outcome = self._pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            code = self._process.wait()
            return self._restarted(f"the process dies: exit code {code}")
        return outcome

    def _restarted(self, what: str) -> Outcome:
        self.close()
        self._start()
        return Outcome(what)


def serve(pipe: Connection) -> None:
    """Runs the programs that are sent, until the pipe is closed."""
    while True:
        try:
            flat, arrays, sizes = pipe.recv()
        except EOFError:
            return
        pipe.send(_ran(loads(flat), arrays, sizes))


def _ran(flat: Module, arrays: Mapping[str, Any], sizes: Mapping[str, Any]) -> Outcome:
    import gossamer
    from gossamer_ir.errors import GossamerError
    from tests.fuzzing.execution.array_placement import Passed, Place
    from tests.fuzzing.execution.compilers import COMPILER

    passed: dict[str, Passed] = {}
    try:
        kernel = COMPILER.kernel(flat)
        for count in (1, 2):
            gossamer.set_num_threads(count)
            passed = {name: Passed(array, Place()) for name, array in arrays.items()}
            kernel(**{name: placed.array for name, placed in passed.items()}, **sizes)
            beside = [name for name, placed in passed.items() if not placed.has_clean_edges]
            if beside:
                return Outcome(f"stores beside {', '.join(beside)}")
    except GossamerError as error:
        return Outcome(code=error.code)
    except Exception as error:  # noqa: BLE001 - whatever is not ours is what is looked for
        return Outcome(f"{type(error).__name__}: {error}")
    return Outcome(arrays={name: np.array(placed.array) for name, placed in passed.items()})


if __name__ == "__main__":
    # As the module, so that what is sent is known by one name on both sides.
    from tests.fuzzing.defects import broken_code
    from tests.fuzzing.lowered import native_process

    pipe, *defects = sys.argv[1:]
    with ExitStack() as planted:
        for defect in defects:
            planted.enter_context(broken_code.DEFECTS[int(defect)].planted())
        native_process.serve(Connection(int(pipe)))
