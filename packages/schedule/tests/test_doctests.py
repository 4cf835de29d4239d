"""Runs the examples of the docstrings and of the README."""

from __future__ import annotations

from pathlib import Path

import pytest

import gossamer_schedule
from tests.doctests.docstrings import modules_with_examples, run_docstrings
from tests.doctests.documents import run_examples

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.parametrize("name", modules_with_examples(gossamer_schedule))
def test_examples_of_docstrings(name):
    run_docstrings(name)


@pytest.mark.parametrize("name", sorted(gossamer_schedule.PRIMITIVES))
def test_every_primitive_shows_a_before_and_after(name):
    assert run_docstrings(getattr(gossamer_schedule, name).__module__) >= 4


def test_examples_of_the_readme():
    assert run_examples(README) > 0
