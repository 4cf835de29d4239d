"""The examples in docstrings and in the README run."""

import doctest
import importlib
from pathlib import Path

import pytest

MODULES = ("specialize", "retype", "script.parse", "script.formats", "script.print", "names")


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module(name):
    module = importlib.import_module(f"gossamer_ir.{name}")
    assert doctest.testmod(module).failed == 0


def test_examples_of_the_readme():
    readme = Path(__file__).parents[1] / "README.md"
    result = doctest.testfile(str(readme), module_relative=False)
    assert result.attempted > 0
    assert result.failed == 0
