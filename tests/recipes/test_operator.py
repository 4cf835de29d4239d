"""The recipe "Add an operator" in docs/extending is complete: the documents that list the operators name each
of them, and each has an oracle and tests."""

from __future__ import annotations

import re

import pytest

from gossamer.operators.by_name import NAMES
from gossamer_testkit.matrices import oracles

pytestmark = pytest.mark.unserialized


@pytest.mark.parametrize(
    ("document", "row"), [("glossary.md", "| operator |"), ("architecture.md", "| `operators/` |")]
)
def test_the_row_of_operators_names_each(document, row, root):
    (line,) = (
        line for line in (root / "docs" / document).read_text().splitlines() if line.startswith(row)
    )
    assert {*NAMES} - {*re.findall(r"\w+", line)} == set()


def test_the_table_of_operators_of_a_format_has_each(root):
    page = (root / "docs" / "plugins.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| `gossamer\.\w+` \|", page, re.MULTILINE)
    assert {*rows} == {*NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_an_operator_has_an_oracle_with_a_bound_of_errors(name):
    assert hasattr(oracles, name)
    assert hasattr(oracles, f"{name}_magnitude") or hasattr(oracles, f"{name}_bound")


@pytest.mark.parametrize("name", NAMES)
def test_an_operator_has_a_file_of_tests(name, root):
    tests = root / "packages" / "gossamer" / "tests" / "operators"
    assert [path for path in tests.glob("test_*.py") if name in path.stem.split("_")]
