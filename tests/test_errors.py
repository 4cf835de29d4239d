"""Every error code has an example: a test that raises it, and its exact message.

`golden/errors.json` names one test for each code and the message that it produces, and for unsupported
constructs the program, which `docs/unsupported.md` shows. The codes are collected from the source; the named
tests run again here and must produce the same messages.
`pytest tests/test_errors.py --update-golden` runs all tests once and writes the file again.
"""

from __future__ import annotations

import ast
import fnmatch
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from gossamer.cli.bench import mkl

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "golden" / "errors.json"
CODE = re.compile(r"[a-z_]+(\.[a-z_*0-9]+)+")
RAISERS = ("report", "Diagnostic", "_too_deep")
"""The functions that take a code, besides the error classes."""
SLOW = (
    "fuzz",
    "random",
    "damaged",
    "mutations",
    "generated",
    "benchmarks",
    "differential",
    "test_corpus",
    "prove",
    "simplify_rules",
)
"""Parts of the names of files whose tests raise no errors of their own."""


def codes_of(path, kind="Error"):
    """The codes that a file passes to errors (of one kind); `*` stands for parts that are only known at run
    time."""
    for call in ast.walk(ast.parse(path.read_text())):
        if not isinstance(call, ast.Call):
            continue
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        prefix = ""
        if kind != "Error" and name != kind:
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


def texts_of(node):
    """The values that a text argument may have."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr():
            yield "".join(
                part.value if isinstance(part, ast.Constant) else "*" for part in node.values
            )
        case ast.IfExp():
            yield from texts_of(node.body)
            yield from texts_of(node.orelse)


def codes_of_source():
    sources = (*ROOT.glob("packages/*/src/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py"))
    return {code for path in sources for code in codes_of(path)}


def examples():
    return {row["code"]: row for row in json.loads(GOLDEN.read_text())}


def recorded(folder, *arguments):
    """The messages of each code in each test, in a run of pytest."""
    folder.mkdir(exist_ok=True)
    env = {**os.environ, "GOSSAMER_ERRORS": str(folder), "PYTHONPATH": str(ROOT / "tests")}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "error_recorder",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        [*command, *arguments], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    found = defaultdict(lambda: defaultdict(list))
    for path in folder.glob("*.jsonl"):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            found[row["code"]][row["test"]].append(shown(row))
    return found, done


def shown(row):
    """The compared part of an example: the message, and the program of an unsupported construct."""
    return row["text"], row.get("program", "")


def files_with_examples():
    """The test files that may be run for their errors."""
    places = ("packages/*/tests/test_*.py", "plugins/*/tests/test_*.py", "tests/test_*.py")
    paths = [path for place in places for path in sorted(ROOT.glob(place))]
    wanted = [path for path in paths if path != Path(__file__).resolve()]
    return [str(path.relative_to(ROOT)) for path in wanted if not any(s in path.name for s in SLOW)]


def fitting(code, tests):
    """The shortest example whose message does not depend on the machine; one with a program, if there is
    one."""
    rows = [
        {"code": code, "test": test, "text": text} | ({"program": program} if program else {})
        for test, examples in sorted(tests.items())
        for text, program in examples
        if sys.prefix not in text
    ]
    return min(rows, key=_order, default=None)


def _order(row):
    text, program = shown(row)
    return not program, len(program) + len(text), row["test"]


def update(tmp_path):
    """Runs all tests, then the chosen ones alone, and keeps messages that are the same both times."""
    found, _ = recorded(tmp_path / "all", *files_with_examples())
    chosen = [fitting(code, tests) for code, tests in sorted(found.items())]
    chosen = [row for row in chosen if row is not None]
    again, _ = recorded(tmp_path / "again", *dict.fromkeys(row["test"] for row in chosen))
    kept = [row for row in chosen if shown(row) in again[row["code"]][row["test"]]]
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


def not_installed():
    """The codes whose examples need packages that this environment does not have."""
    return () if mkl.library_path() is not None else ("peers.mkl",)


def test_each_example_is_rendered_as_it_was(request, tmp_path):
    if request.config.getoption("--update-golden", default=False):
        update(tmp_path)
    wanted = examples()
    found, done = recorded(
        tmp_path / "found", *dict.fromkeys(row["test"] for row in wanted.values())
    )
    assert done.returncode == 0, done.stdout[-3000:]
    changed = {
        code: {"was": shown(row), "is": found[code][row["test"]]}
        for code, row in wanted.items()
        if shown(row) not in found[code][row["test"]] and code not in not_installed()
    }
    assert changed == {}


def test_every_code_of_the_source_has_an_example_and_no_other():
    source, pinned = codes_of_source(), examples().keys()
    assert [code for code in sorted(source) if not fnmatch.filter(pinned, code)] == []
    unknown = [code for code in pinned if not any(fnmatch.fnmatch(code, p) for p in source)]
    assert unknown == []


def test_each_example_is_a_sentence_with_its_code():
    for code, row in examples().items():
        first = row["text"].split(f"[{code}]")[0].rstrip()
        assert f"[{code}]" in row["text"]
        assert first.endswith((".", "?", ")", "`", "'")), row["text"]
