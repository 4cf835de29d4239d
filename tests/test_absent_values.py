"""What is absent is None, not an empty text: no field of a class has an empty text as its default."""

from __future__ import annotations

import ast

import pytest

pytestmark = pytest.mark.unserialized

FOLDERS = ("packages", "plugins", "benchmarks", "tools")

TEXTS = {
    "hint": "appended to an error: no hint adds nothing to the text",
    "data_layout": "the text of LLVM, which is empty for the default",
    "status": "written into the text of a function when it begins",
    "exit": "written into the text of a function when it begins",
}
"""Fields that hold a text, which may be empty."""

LEFT = {
    "packages/schedule/src/gossamer_schedule/reductions/term_reduction.py": {"reducer"},
    "packages/testkit/src/gossamer_testkit/corpus/case.py": {"names", "raises"},
}
"""Fields that are still to be changed: remove a line when you change its file, and add none."""


def empty_fields(tree):
    """The names of the fields of classes whose default is an empty text."""
    return {
        statement.target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
        and isinstance(statement.value, ast.Constant)
        and statement.value.value == ""
    }


def test_a_field_that_is_absent_is_none(root):
    found = {
        path.relative_to(root).as_posix(): empty_fields(ast.parse(path.read_text())) - TEXTS.keys()
        for folder in FOLDERS
        for path in (root / folder).rglob("*.py")
        if "tests" not in path.parts
    }
    assert {path: names for path, names in found.items() if names} == LEFT


def test_the_search_finds_an_empty_text():
    text = 'class A:\n    name: str = ""\n    other: str = "a"\n    hint: str | None = None\n'
    assert empty_fields(ast.parse(text)) == {"name"}
