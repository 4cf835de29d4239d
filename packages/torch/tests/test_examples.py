"""The examples of the docstrings and of the documents run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import gossamer_torch
from tests.doctests.documents import run_examples

MODULES = [item.name for item in pkgutil.walk_packages(gossamer_torch.__path__, "gossamer_torch.")]


ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = ("docs/torch.md", "packages/torch/README.md")


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.filterwarnings("ignore:Sparse .* beta:UserWarning")
def test_the_examples_of_a_module_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_examples_of_a_document_run(name):
    assert run_examples(ROOT / name)
