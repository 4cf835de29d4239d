"""Runs the examples of the docstrings and of the README."""

from __future__ import annotations

from pathlib import Path

import pytest

import gossamer_heuristics
from tests.doctests.docstrings import modules_with_examples, run_docstrings
from tests.doctests.documents import run_examples

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.parametrize("name", modules_with_examples(gossamer_heuristics))
def test_examples_of_docstrings(name):
    run_docstrings(name)


def test_examples_of_the_readme():
    assert run_examples(README) > 0
