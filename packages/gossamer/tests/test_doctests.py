"""Runs the examples of the docstrings and of the README; every error code has a test."""

from __future__ import annotations

import doctest
import importlib.util
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import gossamer


def has_examples(name):
    return ">>> " in Path(importlib.util.find_spec(name).origin).read_text(encoding="utf-8")


MODULES = [
    found.name
    for found in pkgutil.walk_packages(gossamer.__path__, "gossamer.")
    if has_examples(found.name)
]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    flags = doctest.ELLIPSIS
    result = doctest.testmod(
        importlib.import_module(name), optionflags=flags, extraglobs={"np": np}
    )
    assert result.attempted > 0
    assert result.failed == 0


def test_readme():
    text = (Path(__file__).parents[1] / "README.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert examples
    for example in examples:
        exec(compile(example, "README.md", "exec"), {})


def test_every_code_of_an_error_is_pinned_by_a_test():
    code = re.compile(r'"((?:operand|option|compile|operator|graph)\.[a-z.]+)"')
    root = Path(__file__).parents[1]
    raised = {
        found for path in root.glob("src/**/*.py") for found in code.findall(path.read_text())
    }
    pinned = {
        found for path in root.glob("tests/**/*.py") for found in code.findall(path.read_text())
    }
    assert raised == pinned
