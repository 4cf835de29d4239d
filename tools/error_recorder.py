"""A pytest plugin that records the message of every error with a code that a test raises.

`pytest -p tools.error_recorder` with `GOSSAMER_ERRORS` set to a folder writes one file for each process, with
lines `{"code", "test", "text"}` for the first tests of each code, except those with generated examples.
With `GOSSAMER_ERROR_TESTS`, a JSON file of names, only these of the collected tests run. For an unsupported
construct, `program` is the module (or script, or format description) that was passed to the outermost
function of gossamer.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from gossamer_ir.errors import CodedError, GossamerError, UnsupportedError
from gossamer_ir.nodes import FormatDescription, Module
from gossamer_ir.script import print_format, print_module
from gossamer_ir.verify.context import VerifyContext

MAX_TESTS_PER_CODE = 60
"""The number of tests that are kept for each code."""

ALSO_REFUSED = ("parse.elem_offset", "parse.strides", "plugin.undeclared", "verify.buffer.siblings")
"""Codes of unsupported constructs whose error is not an `UnsupportedError`, because an earlier check rejects
them."""

_test = ""
_tests: dict[str, set[str]] = defaultdict(set)
_initialize, _report = CodedError.__init__, VerifyContext.report
_ROOT = str(Path(__file__).resolve().parents[1])
_TEMPORARY = re.compile(rf"{re.escape(tempfile.gettempdir())}/[^\s',]*/")
_ADDRESS = re.compile(r"\b0x[0-9a-f]+\b")
_TEST_FILE = re.compile(r"/tests/(?:\w+/)*test_\w+\.py$")


def stable(text: str) -> str:
    """Return a message without parts that differ between runs: folders and addresses."""
    if not tempfile.gettempdir().startswith(_ROOT):
        text = text.replace(_ROOT, "<root>")
    without = _TEMPORARY.sub("<folder>/", text).replace(_ROOT, "<root>")
    return _ADDRESS.sub("<address>", without)


def _record(error: CodedError, *args: object, **kwargs: object) -> None:
    _initialize(error, *args, **kwargs)  # type: ignore[arg-type]  # handed through as they are
    for diagnostic in error.diagnostics:
        is_refusal = isinstance(error, UnsupportedError) or diagnostic.code in ALSO_REFUSED
        _keep(diagnostic.code, error.render(), _program(sys._getframe(1)) if is_refusal else None)


def _program(frame: FrameType | None) -> str | None:
    """Return the argument of the outermost function of gossamer on the stack, else a local variable of the
    test: when a kernel raises an error, its program is not on the stack any more."""
    inside: list[FrameType] = []
    around: list[FrameType] = []
    while frame is not None:
        # By module, not by file: the packages may be installed from wheels.
        if str(frame.f_globals.get("__name__")).startswith("gossamer"):
            inside.append(frame)
        elif _TEST_FILE.search(frame.f_code.co_filename):
            around.append(frame)
        frame = frame.f_back
    values = [value for outer in (*inside[::-1], *around) for value in [*outer.f_locals.values()]]
    return next(filter(None, map(_text_of, values)), None)


def _text_of(value: object) -> str | None:
    try:
        if isinstance(value, Module):
            return print_module(value)
        if isinstance(value, FormatDescription):
            return print_format(value)
    except (
        GossamerError,
        AttributeError,
        ValueError,
        RecursionError,
    ):  # no module that could be printed
        return None
    is_script = isinstance(value, str) and "@T." in value
    return str(value) if is_script else None


def _record_report(context: VerifyContext, code: str, *args: object, **kwargs: object) -> None:
    """Record diagnostics of formats, which are returned and not raised."""
    _report(context, code, *args, **kwargs)  # type: ignore[arg-type]  # handed through as they are
    diagnostic = context.diagnostics[-1]
    if code.startswith("verify.format"):
        _keep(code, CodedError(code, diagnostic.message, hint=diagnostic.hint).render())


def _keep(code: str, text: str, program: str | None = None) -> None:
    tests = _tests[code]
    if _test and (_test in tests or len(tests) < MAX_TESTS_PER_CODE):
        tests.add(_test)
        line = {"code": code, "test": _test, "text": stable(text)}
        if program is not None:
            line["program"] = program.strip("\n") + "\n"
        with _file().open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(line) + "\n")


def _file() -> Path:
    return Path(os.environ["GOSSAMER_ERRORS"]) / f"{os.getpid()}.jsonl"


def pytest_configure(config: pytest.Config) -> None:
    # Replaced for this run of the tests only.
    VerifyContext.report = _record_report  # type: ignore[method-assign, assignment]
    CodedError.__init__ = _record  # type: ignore[method-assign, assignment]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    names = os.environ.get("GOSSAMER_ERROR_TESTS")
    if names is None:
        return
    asked = {*json.loads(Path(names).read_text())}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in asked])
    items[:] = [item for item in items if item.nodeid in asked]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    global _test
    # The examples of Hypothesis depend on the constants of all imported modules, so not only on the test.
    is_generated = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    _test = "" if is_generated else item.nodeid
    try:
        return (yield)
    finally:
        _test = ""
