"""`tests/golden/errors.json`: for each error code of the source, a test that raises it and its exact message.

The tests that the file names run again, and their messages are stored as they are now. For a code without
an example, the files of tests that contain its text run; all tests, which take many minutes, only if none of
these raises it. The shortest message is chosen. To choose all examples again, delete the file.
"""

from __future__ import annotations

import ast
import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeAlias

import pytest

from tools import ROOT

GOLDEN = ROOT / "tests/golden/errors.json"
CODE = re.compile(r"[a-z_*]+(\.[a-z_*0-9]+)+")
RAISERS = ("report", "Diagnostic", "_too_deep")
"""The functions that take a code, besides the error classes."""
EVERYWHERE = ("packages", "plugins", "tests")
"""The folders of all tests."""
NOT_RUN = "packages/torch"
"""The folder of the distribution whose tests need torch, which only their own session installs. They name its
codes (`tests/conventions/test_errors.py`)."""
SELECTED = ("-m", "not no_error_examples")
"""The arguments of pytest that select, of some tests, those that may be run for their errors."""

ExampleRow: TypeAlias = dict[str, str]
"""An example: the code, the test, the text of the message, and for an unsupported construct the program."""
Shown: TypeAlias = tuple[str, str]
"""The parts of an example that are compared: the message and the program."""
Recorded: TypeAlias = Mapping[str, Mapping[str, list[Shown]]]
"""The errors that each test raised, by code and by test."""


def files() -> dict[Path, str]:
    """Return the file with the examples as the tests raise them now."""
    with tempfile.TemporaryDirectory() as folder:
        rows = current_examples(Path(folder))
    return {GOLDEN: json.dumps(rows, indent=1, ensure_ascii=False) + "\n"}


def current_examples(folder: Path) -> list[ExampleRow]:
    """Return an example of each code, sorted by code."""
    stored, patterns = stored_examples(), codes_of_source()
    record = messages_of_tests(folder / "stored", [row["test"] for row in stored.values()])
    rows = {}
    for code, row in stored.items():
        if not is_covered(code, patterns):
            continue
        again = record[code][row["test"]]
        is_kept = compared_parts(row) in again
        example = row if is_kept else shortest_example(code, {row["test"]: again})
        if example is not None:
            rows[code] = example
    lost = [code for code in stored.keys() - rows.keys() if is_covered(code, patterns)]
    # A case got another name in the same file; a new case names its code; and if neither, all tests.
    rounds: tuple[Callable[[Iterable[str]], set[str]], ...] = (
        lambda missing: files_of_tests(stored[code]["test"] for code in missing if code in stored),
        files_naming,
        lambda _: {*EVERYWHERE},
    )
    for number, tests_for in enumerate(rounds):
        missing = [code for code in lost if code not in rows]
        missing += [pattern for pattern in patterns if not fnmatch.filter(rows, pattern)]
        if missing and (tests := tests_for(missing)):
            rows |= searched_examples(folder / f"round{number}", missing, sorted(tests))
    return [rows[code] for code in sorted(rows)]


def searched_examples(
    folder: Path, patterns: Iterable[str], tests: Sequence[str]
) -> dict[str, ExampleRow]:
    """Return examples of these codes from tests, if they raise the same message when they run alone."""
    folder.mkdir()
    record = record_messages(folder / "found", [*tests, *SELECTED])
    codes = {code for pattern in patterns for code in fnmatch.filter(record, pattern)}
    chosen = [shortest_example(code, record[code]) for code in sorted(codes)]
    rows = [row for row in chosen if row is not None]
    again = messages_of_tests(folder / "again", [row["test"] for row in rows])
    return {
        row["code"]: row for row in rows if compared_parts(row) in again[row["code"]][row["test"]]
    }


def files_of_tests(tests: Iterable[str]) -> set[str]:
    """Return the files of tests, if they exist."""
    files = {test.partition("::")[0] for test in tests}
    return {file for file in files if (ROOT / file).exists()}


def files_naming(patterns: Iterable[str]) -> set[str]:
    """Return the files of tests whose text contains one of these codes, with or without its first part."""
    texts = []
    for pattern in patterns:
        first, _, rest = re.escape(pattern).replace(r"\*", "[a-z_0-9]+").partition(r"\.")
        texts.append(rest if r"\." in rest else rf"{first}\.{rest}")
    named = re.compile(rf"\b({'|'.join(texts)})\b")
    return {
        path.relative_to(ROOT).as_posix()
        for folder in EVERYWHERE
        for path in (ROOT / folder).rglob("test_*.py")
        if texts and named.search(path.read_text())
    }


def stored_examples() -> dict[str, ExampleRow]:
    """Return the stored example of each code."""
    rows = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else []
    return {row["code"]: row for row in rows}


def messages_of_tests(folder: Path, tests: Iterable[str]) -> Recorded:
    """Run those of the tests that exist, and return what they raise.

    Pytest runs nothing if one does not exist, so it collects their files, and the plugin leaves out the
    others.
    """
    asked = {*tests}
    files = files_of_tests(asked)
    folder.mkdir()
    names = folder / "asked.json"
    names.write_text(json.dumps(sorted(asked)))
    return record_messages(folder, sorted(files), asked=names)


def record_messages(folder: Path, tests: Sequence[str], asked: Path | None = None) -> Recorded:
    """Run pytest with these arguments, only the tests in the file `asked` if there is one, and return what
    they raise."""
    if tests:  # without any, pytest would run all
        folder.mkdir(exist_ok=True)
        env = {**os.environ, "GOSSAMER_ERRORS": str(folder)}
        env |= {} if asked is None else {"GOSSAMER_ERROR_TESTS": str(asked)}
        options = ("-q", "-p", "no:cacheprovider", "-p", "tools.error_recorder")
        command = [sys.executable, "-m", "pytest", *options, *tests]
        done = subprocess.run(
            command, cwd=ROOT, env=env, capture_output=True, text=True, check=False
        )
        if done.returncode not in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
            raise RuntimeError(f"the tests that raise errors fail:\n{done.stdout[-3000:]}")
    record: dict[str, dict[str, list[Shown]]] = defaultdict(lambda: defaultdict(list))
    for path in folder.glob("*.jsonl"):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            record[row["code"]][row["test"]].append(compared_parts(row))
    return record


def compared_parts(row: ExampleRow) -> Shown:
    """Return the compared parts of an example: the message, and the program of an unsupported construct."""
    return row["text"], row.get("program", "")


def shortest_example(code: str, tests: Mapping[str, Iterable[Shown]]) -> ExampleRow | None:
    """Return the shortest example whose message does not depend on the machine, one with a program if
    possible."""
    rows = [
        {"code": code, "test": test, "text": text} | ({"program": program} if program else {})
        for test, examples in sorted(tests.items())
        for text, program in examples
        if sys.prefix not in text
    ]
    return min(rows, key=_order, default=None)


def _order(row: ExampleRow) -> tuple[bool, int, str]:
    text, program = compared_parts(row)
    return not program, len(program) + len(text), row["test"]


@cache
def codes_of_source(kind: str = "Error") -> frozenset[str]:
    """Return the codes that the sources pass to errors (of one kind), without those of `NOT_RUN`; `*` stands
    for parts that are only known at run time."""
    folders = {*ROOT.glob("packages/*"), *ROOT.glob("plugins/*")} - {ROOT / NOT_RUN}
    sources = (path for folder in folders for path in folder.glob("src/**/*.py"))
    return frozenset(code for path in sources for code in codes_of_file(path, kind))


def codes_of_file(path: Path, kind: str) -> Iterator[str]:
    """Yield the codes that a file passes to errors, and those in its table `_CODES`."""
    for call in ast.walk(ast.parse(path.read_text())):
        if kind == "Error" and isinstance(call, ast.Assign) and _is_table_of_codes(call):
            yield from ast.literal_eval(call.value).values()
        if not isinstance(call, ast.Call):
            continue
        name = getattr(call.func, "attr", getattr(call.func, "id", None))
        prefix = ""
        if name is None or (kind != "Error" and name != kind):
            continue
        if name == "schedule_error":
            prefix = "schedule."
        elif name == "error" and "script" in path.parts:
            prefix = "parse."
        elif not name.endswith("Error") and name not in RAISERS:
            continue
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        for text in (text for argument in arguments[:1] for text in texts_of(argument)):
            if CODE.fullmatch(prefix + text):
                yield prefix + text


def _is_table_of_codes(node: ast.Assign) -> bool:
    return [ast.unparse(target) for target in node.targets] == ["_CODES"]


def texts_of(node: ast.expr) -> Iterator[str]:
    """Yield the values that a text argument may have."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr():
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "*" for part in node.values
            )
        case ast.IfExp():
            yield from texts_of(node.body)
            yield from texts_of(node.orelse)


def is_covered(code: str, patterns: Iterable[str]) -> bool:
    """Return whether one of the codes of the source, which may have `*`, fits a code."""
    return any(fnmatch.fnmatch(code, pattern) for pattern in patterns)
