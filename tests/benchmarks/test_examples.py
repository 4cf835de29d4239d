"""The examples in the docstrings of the benchmark harness."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import benchmarks

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]

ROOT = Path(benchmarks.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
    for path in ROOT.rglob("*.py")
    if ">>> " in path.read_text()
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_the_harness(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
