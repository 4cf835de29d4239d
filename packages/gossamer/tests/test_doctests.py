"""Runs the examples of the docstrings and of the README; every error code has a test."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import gossamer
from tests.doctests.docstrings import modules_with_examples, run_docstrings
from tests.doctests.documents import run_examples

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.parametrize("name", modules_with_examples(gossamer))
def test_examples_of_docstrings(name):
    if name == "gossamer.pictures.spy":
        pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    run_docstrings(name, np=np)


def test_examples_of_the_readme():
    assert run_examples(README) > 0


def test_every_code_of_an_error_is_pinned_by_a_test():
    code = re.compile(r'"((?:operand|option|compile|operator|graph)\.[a-z.]+)"')
    raised = {
        block
        for path in README.parent.glob("src/**/*.py")
        for block in code.findall(path.read_text())
    }
    pinned = {
        block
        for path in README.parent.glob("tests/**/*.py")
        for block in code.findall(path.read_text())
    }
    assert raised == pinned
