"""The recipe "Add an operator" in docs/extending is complete: each has an oracle, a baseline and tests."""

from __future__ import annotations

import pytest

from gossamer.operators.by_name import NAMES
from gossamer_testkit.matrices import oracles

pytestmark = pytest.mark.unserialized


@pytest.mark.parametrize("name", NAMES)
def test_an_operator_has_an_oracle_with_a_bound_of_errors(name):
    assert hasattr(oracles, name)
    assert hasattr(oracles, f"{name}_magnitude") or hasattr(oracles, f"{name}_bound")


@pytest.mark.parametrize("name", NAMES)
def test_an_operator_has_a_file_of_tests(name, root):
    tests = root / "packages" / "gossamer" / "tests" / "operators"
    assert [path for path in tests.glob("test_*.py") if name in path.stem.split("_")]


@pytest.mark.parametrize("name", NAMES)
def test_an_operator_has_a_baseline(name, root):
    folder = root / "packages/gossamer/src/gossamer/cli/comparison/baselines"
    assert (folder / f"{name}.py").exists()
