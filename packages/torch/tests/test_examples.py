"""The examples of the docstrings and of the documents run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import gossamer_torch

MODULES = [item.name for item in pkgutil.walk_packages(gossamer_torch.__path__, "gossamer_torch.")]


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.filterwarnings("ignore:Sparse .* beta:UserWarning")
def test_the_examples_of_a_module_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
