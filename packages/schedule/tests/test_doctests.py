"""Runs the examples of the documentation."""

from __future__ import annotations

import doctest
import importlib.util
import pkgutil
from pathlib import Path

import pytest

import gossamer_schedule

README = Path(__file__).parents[1] / "README.md"


def has_examples(name):
    return ">>> " in Path(importlib.util.find_spec(name).origin).read_text(encoding="utf-8")


MODULES = [
    found.name
    for found in pkgutil.walk_packages(gossamer_schedule.__path__, "gossamer_schedule.")
    if has_examples(found.name)
]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_show_what_happens(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("name", sorted(gossamer_schedule.PRIMITIVES))
def test_every_primitive_shows_a_before_and_after(name):
    module = importlib.import_module(getattr(gossamer_schedule, name).__module__)
    assert doctest.testmod(module).attempted >= 4


def test_readme_example_runs():
    result = doctest.testfile(str(README), module_relative=False)
    assert result.attempted > 0
    assert result.failed == 0
