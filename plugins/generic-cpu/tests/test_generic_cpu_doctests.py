"""Runs the examples of the modules and of the README."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import gossamer_generic_cpu

PREFIX = "gossamer_generic_cpu."
MODULES = [
    found.name.removeprefix(PREFIX)
    for found in pkgutil.walk_packages(gossamer_generic_cpu.__path__, PREFIX)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of(name):
    failed, _ = doctest.testmod(importlib.import_module(f"gossamer_generic_cpu.{name}"))
    assert failed == 0


def test_example_of_the_readme():
    failed, tried = doctest.testfile(
        str(Path(__file__).parents[1] / "README.md"), module_relative=False
    )
    assert failed == 0
    assert tried > 0
