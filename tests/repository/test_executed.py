"""The plugin `executed` of pytest counts statements that were reached, and never one that was not."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.pytest_plugins.executed import MARKS, instrument, ranges

SOURCE = '''"""A module."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import PathLike


class Pair:
    """Two numbers."""

    first: int
    second: int = 2


def choose(number):
    """Returns or raises."""
    global chosen
    if number > 2:
        chosen = number
        return "large"
    elif number < 0:
        chosen = 1 // (number + 1)
        chosen = number
    else:
        try:
            while True:
                number -= 1
                if number < 0:
                    break
        finally:
            chosen = number
    match number:
        case 5:
            return "five"
    return "small"


def unused():
    with open("nothing") as file:
        return file
'''
OF_IMPORT = {2, 4, 6, 10, 14, 17, 40}
ALL = OF_IMPORT | {20, 21, 22, 23, 24, 25, 27, 28, 29, 30, 31, 33, 34, 36, 37, 41, 42}


def executed(*numbers):
    """Return the lines that were executed by importing and by calls, and all lines that count."""
    tree, groups = instrument(SOURCE)
    seen = [0] * len(groups)
    names = {MARKS: seen, "__name__": "example"}
    exec(compile(tree, "example.py", "exec"), names)
    for number in numbers:
        try:
            names["choose"](number)
        except ZeroDivisionError:
            assert number == -1
    lines_seen = {
        line for lines, is_seen in zip(groups, seen, strict=True) if is_seen for line in lines
    }
    return lines_seen, {line for lines in groups for line in lines}


@pytest.mark.parametrize(
    ("number", "lines"),
    [
        (3, {20, 21, 22}),
        (-1, {20, 23}),  # the statement that raises, and those after it, do not count
        (-2, {20, 23, 24, 25, 34, 37}),
        (0, {20, 23, 27, 28, 29, 30, 31, 33, 34, 37}),
    ],
)
def test_statements_that_were_reached_are_counted(number, lines):
    assert executed() == (OF_IMPORT, ALL)
    assert executed(number) == (OF_IMPORT | lines, ALL)


def test_tracebacks_have_the_lines_of_the_source():
    tree, groups = instrument("def f():\n    x = 1\n\n    raise KeyError\n")
    names = {MARKS: [0] * len(groups)}
    exec(compile(tree, "example.py", "exec"), names)
    with pytest.raises(KeyError) as caught:
        names["f"]()
    assert caught.tb.tb_next.tb_lineno == 4


def test_missing_lines_are_joined_where_nothing_between_them_was_executed():
    assert ranges([1, 2, 5, 6, 9, 12], [2, 5, 9, 12]) == "2-5, 9-12"
    assert ranges([1, 2, 3], [1, 3]) == "1, 3"
    assert ranges([1], []) == ""


@pytest.mark.parametrize(
    ("parallel", "least", "status"),
    [((), "81", 1), (("-n", "2"), "80", 0)],
    ids=["one process", "two workers"],
)
def test_a_run_fails_if_too_little_was_executed(tmp_path, parallel, least, status):
    """A module that no test imports counts, too: 8 of 10 statements are executed, by two tests."""
    package = tmp_path / "sample_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "used.py").write_text(
        "def sign(number):\n"
        "    if number > 0:\n"
        "        return 1\n"
        "    if number < 0:\n"
        "        return -1\n"
        "    answer = 0\n"
        "    assert answer == number\n"
        "    return answer\n"
    )
    (package / "unused.py").write_text("A = 1\nB = 2\n")
    (tmp_path / "test_sample.py").write_text(
        "from sample_package.used import sign\n"
        "def test_one():\n    assert sign(4) == 1\n"
        "def test_two():\n    assert [sign(-4), sign(0)] == [-1, 0]\n"
    )
    measured = [
        "-p",
        "tests.pytest_plugins.executed",
        "--executed",
        "sample_package",
        "--executed-min",
        least,
    ]
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *parallel, *measured],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.getcwd()}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == status, process.stdout + process.stderr
    assert "80.00 % of the statements of sample_package were executed" in process.stdout
    assert "unused.py: 1-2" in process.stdout
