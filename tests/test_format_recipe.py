"""The list "Add a format" in CONTRIBUTING.md is complete: what operators do with a format follows from its
record and its description. No other code names a format but CSR, to which all are converted."""

from __future__ import annotations

import ast

import pytest

from gossamer_formats import format_names
from gossamer_formats.internal_api import COMPOSABLE_FORMATS

pytestmark = pytest.mark.unserialized

CONVERTED_TO = "csr"
MODELS = "packages/tune/src/gossamer_tune/model"
"""The models of costs, one file for each format ("Add a cost model")."""
EXAMPLES = {"packages/gossamer/src/gossamer/cli/commands/formats.py": ["coo"]}
"""Files that make a matrix to show, with the format of its arrays."""
FREE_OF_FORMATS = ("gossamer", "tune", "schedule", "lower", "backend", "llvm", "ir")


def formats_named_in(text, names):
    """The names of formats among the constants of a program, without those in docstrings."""
    constants = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    return sorted({node.value for node in constants if isinstance(node.value, str)} & names)


def test_no_code_beside_the_record_of_a_format_names_it(root):
    names = {*format_names(), *COMPOSABLE_FORMATS.names()} - {CONVERTED_TO}
    named = {
        path.relative_to(root).as_posix(): formats_named_in(path.read_text(), names)
        for package in FREE_OF_FORMATS
        for path in (root / f"packages/{package}/src").rglob("*.py")
        if (root / MODELS) not in path.parents
    }
    assert {path: found for path, found in named.items() if found} == EXAMPLES
    assert formats_named_in('match name:\n    case "bsr":\n        "docs of sell"', names) == [
        "bsr"
    ]


def test_each_model_of_costs_is_about_one_format(root):
    names = {*format_names(), *COMPOSABLE_FORMATS.names()}
    for path in (root / MODELS).glob("*_times_*.py"):
        assert len(formats_named_in(path.read_text(), names)) == 1, path.name
