"""A function `require_...` only checks; `required_...` returns what it has found, or refuses."""

from __future__ import annotations

import ast

import pytest

pytestmark = pytest.mark.unserialized

FOLDERS = ("packages/*/src", "plugins/*/src", "benchmarks", "tools", "examples", "docs")


def misnamed(tree):
    """The functions whose name promises a value, or none, and whose annotation says otherwise."""
    return [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and (
            (node.name.lstrip("_").startswith("require_") and returns_value(node))
            or (node.name.lstrip("_").startswith("required_") and not returns_value(node))
        )
    ]


def returns_value(function):
    """Whether the annotation of a function promises a value."""
    return function.returns is not None and ast.unparse(function.returns) not in (
        "None",
        "NoReturn",
    )


def test_only_functions_named_required_return_a_value(root):
    found = {
        path.relative_to(root).as_posix(): misnamed(ast.parse(path.read_text()))
        for folder in FOLDERS
        for path in root.glob(f"{folder}/**/*.py")
    }
    assert {path: names for path, names in found.items() if names} == {}


def test_the_search_finds_both_kinds():
    text = "def require_a() -> int: ...\ndef _required_b() -> None: ...\ndef require_c() -> None: ...\n"
    assert misnamed(ast.parse(text)) == ["require_a", "_required_b"]
