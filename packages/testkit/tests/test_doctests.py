"""Runs the examples of the docstrings and of the README."""

import doctest
import importlib.util
import pkgutil
import warnings
from pathlib import Path

import pytest

import gossamer_testkit

PREFIX = "gossamer_testkit."


def has_examples(name):
    return ">>> " in Path(importlib.util.find_spec(name).origin).read_text(encoding="utf-8")


MODULES = [
    found.name.removeprefix(PREFIX)
    for found in pkgutil.walk_packages(gossamer_testkit.__path__, PREFIX)
    if has_examples(found.name)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name):
    result = doctest.testmod(importlib.import_module(f"gossamer_testkit.{name}"))
    assert result.attempted > 0
    assert result.failed == 0


def test_the_example_of_the_readme():
    readme = Path(__file__).parents[1] / "README.md"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "invalid value encountered", RuntimeWarning)
        result = doctest.testfile(str(readme), module_relative=False)
    assert result.attempted >= 4
    assert result.failed == 0
