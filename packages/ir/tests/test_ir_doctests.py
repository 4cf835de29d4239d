"""Runs the examples of the docstrings and of the README."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import gossamer_ir

MODULES = [info.name for info in pkgutil.walk_packages(gossamer_ir.__path__, "gossamer_ir.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_examples_of_the_readme():
    readme = Path(__file__).parents[1] / "README.md"
    result = doctest.testfile(str(readme), module_relative=False)
    assert result.attempted > 0
    assert result.failed == 0
