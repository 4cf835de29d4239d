"""The documents that list the operators name each of them ("Add an operator" in docs/extending)."""

from __future__ import annotations

import re

import pytest

from gossamer.operators.by_name import NAMES

pytestmark = pytest.mark.unserialized


@pytest.mark.parametrize(
    ("document", "row"), [("glossary.md", "| operator |"), ("architecture.md", "| `operators/` |")]
)
def test_the_row_of_operators_names_each(document, row, root):
    (line,) = (
        line for line in (root / "docs" / document).read_text().splitlines() if line.startswith(row)
    )
    assert {*NAMES} - {*re.findall(r"\w+", line)} == set()
