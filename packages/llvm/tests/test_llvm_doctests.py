"""Runs the examples of the modules and of the README."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import gossamer_llvm

MODULES = [found.name for found in pkgutil.walk_packages(gossamer_llvm.__path__, "gossamer_llvm.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_example_of_the_readme():
    failed, tried = doctest.testfile(
        str(Path(__file__).parents[1] / "README.md"), module_relative=False
    )
    assert failed == 0
    assert tried > 0
