"""Runs the examples of the docstrings and of the README."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import gossamer_backend

PREFIX = "gossamer_backend."
MODULES = [
    found.name.removeprefix(PREFIX)
    for found in pkgutil.walk_packages(gossamer_backend.__path__, PREFIX)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name):
    assert doctest.testmod(importlib.import_module(f"gossamer_backend.{name}")).failed == 0


def test_there_are_examples():
    counts = {
        name: doctest.testmod(importlib.import_module(f"gossamer_backend.{name}")).attempted
        for name in MODULES
    }
    assert {"artifact", "call.kernel", "export.symbol", "store.cache", "store.keys"} <= {
        name for name, count in counts.items() if count
    }


def test_the_example_of_the_readme():
    readme = Path(__file__).parents[1] / "README.md"
    result = doctest.testfile(str(readme), module_relative=False)
    assert result.attempted > 3
    assert result.failed == 0
