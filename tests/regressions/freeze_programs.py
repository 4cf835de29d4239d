"""Stores programs of every stage with data and the results of NumPy; run as a program.

    python tests/regressions/freeze_programs.py

Writes `packages/ir/tests/samples/programs/VERSION-NAME.json.gz` for each program that has no file of this
version yet. Existing files are not changed, because files of earlier versions must stay readable. The
programs are those that the tests of the public API run against NumPy; one in two spellings is stored once.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "packages" / "ir" / "tests" / "samples" / "programs"
TESTS = ROOT / "packages" / "gossamer" / "tests"
MAX_ELEMENTS = 400
"""The maximum number of elements in all arrays of a sample."""

sys.path.insert(0, str(TESTS / "helpers"))

import script_runs  # noqa: E402
import sparse_programs  # noqa: E402

from gossamer.compilation.pipeline import lower_by_stage  # noqa: E402
from gossamer_ir.interchange.records import Schedule  # noqa: E402
from gossamer_ir.interchange.serialization import VERSION, dumps  # noqa: E402
from gossamer_ir.nodes import Module  # noqa: E402
from gossamer_ir.script import parse_module  # noqa: E402
from gossamer_ir.transform.retype_module import retype_module  # noqa: E402
from gossamer_machine import Machine  # noqa: E402
from gossamer_schedule.rules import default_schedule  # noqa: E402

MACHINE = Machine()
"""A fixed machine, so that samples do not depend on the machine."""

Found: TypeAlias = tuple[int, Module, dict[str, Any], dict[str, Any]]


class Recorder:
    """Keeps the largest small call of each program."""

    def __init__(self) -> None:
        self.found: dict[str, Found] = {}
        self._scripts: dict[int, tuple[str, Module]] = {}

    def keep(self, name: str, module: Module, arguments: Any, expected: dict[str, Any]) -> None:
        (function,) = module.functions
        values = {param.name: _copied(arguments[param.name]) for param in function.params}
        size = sum(np.size(value) for value in values.values())
        is_whole = all(
            isinstance(value, int)
            or not np.issubdtype(value.dtype, np.floating)
            or bool(np.all(np.isnan(value) | (value == np.round(value))))
            for value in values.values()
        )
        if is_whole and size <= MAX_ELEMENTS and size > self.found.get(name, (0,))[0]:
            wanted = {key: np.array(value, float) for key, value in expected.items()}
            self.found[name] = (size, module, values, wanted)

    def watch(self) -> None:
        """Records the programs that the tests of scripts run."""
        program, check = script_runs.program, script_runs.assert_everywhere

        def named(name: str, **options: Any) -> Module:
            module = program(name, **options)
            self._scripts[id(module)] = (name, module)
            return module

        def kept(module: Module, arguments: Any, **expected: Any) -> None:
            check(module, arguments, **expected)
            if id(module) in self._scripts:
                name, _ = self._scripts[id(module)]
                self.keep(name, module, arguments, expected)

        script_runs.program, script_runs.assert_everywhere = named, kept


def _copied(value: Any) -> Any:
    return np.array(value) if isinstance(value, np.ndarray) else int(value)


def record_sparse_programs(recorder: Recorder) -> None:
    """The programs over formats, at float32 and int32."""
    for name, program in sparse_programs.PROGRAMS.items():
        module = retype_module(parse_module(program.script), dtype="float32", index_dtype="int32")
        for matrix in sparse_programs.matrices("float32", "int32"):
            call = program.call(matrix, 5)
            (function,) = module.functions
            results = [
                param.name
                for param in function.params
                if np.shares_memory(np.asarray(call.arguments[param.name]), np.asarray(call.result))
            ]
            if len(results) == 1:
                wanted = {results[0]: call.expected}
                recorder.keep(_identifier(name), module, call.arguments, wanted)


def _identifier(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name)


def sample(module: Module, values: dict[str, Any], expected: dict[str, Any]) -> bytes:
    """A program at every stage, as written and with the schedule of the rules."""
    stages = list(lower_by_stage(module, Schedule()))
    stages.append(list(lower_by_stage(module, default_schedule(module, MACHINE)))[-1])
    record = {
        "modules": [json.loads(dumps(stage)) for stage in stages],
        "values": {name: _encoded(value) for name, value in values.items()},
        "expected": {name: _encoded(value) for name, value in expected.items()},
    }
    return gzip.compress(json.dumps(record, separators=(",", ":")).encode(), 9, mtime=0)


def _encoded(value: Any) -> Any:
    if isinstance(value, int):
        return value
    return [
        str(value.dtype),
        list(value.shape),
        [repr(item) for item in value.reshape(-1).tolist()],
    ]


def main() -> None:
    recorder = Recorder()
    recorder.watch()
    files = [
        str(path) for path in sorted(TESTS.rglob("test_*.py")) if "script_runs" in path.read_text()
    ]
    status = pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-W", "ignore", *files])
    if status:
        sys.exit("the programs do not pass their tests")
    record_sparse_programs(recorder)
    FOLDER.mkdir(parents=True, exist_ok=True)
    version = ".".join(map(str, VERSION))
    frozen: list[Module] = []
    for name, (_, module, values, expected) in sorted(recorder.found.items()):
        path = FOLDER / f"{version}-{name}.json.gz"
        if not path.exists() and module not in frozen:
            path.write_bytes(sample(module, values, expected))
            print(path.name, path.stat().st_size)
        frozen.append(module)


if __name__ == "__main__":
    main()
