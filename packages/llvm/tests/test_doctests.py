"""Runs the examples of the modules and of the README."""

import doctest
import importlib.util
import pkgutil
from pathlib import Path

import pytest

import gossamer_llvm


def has_examples(name):
    return ">>> " in Path(importlib.util.find_spec(name).origin).read_text(encoding="utf-8")


MODULES = [
    found.name
    for found in pkgutil.walk_packages(gossamer_llvm.__path__, "gossamer_llvm.")
    if has_examples(found.name)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of(name):
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert failed == 0
    assert tried > 0


def test_example_of_the_readme():
    failed, tried = doctest.testfile(
        str(Path(__file__).parents[1] / "README.md"), module_relative=False
    )
    assert failed == 0
    assert tried > 0
