"""A function `require_...` only checks; `required_...` returns what it has found, or refuses. A function
`check_...` records what is wrong, and does not raise it."""

from __future__ import annotations

import ast

import pytest

from tests.conventions.syntax_trees import nodes_of, tree_of

pytestmark = pytest.mark.unserialized

FOLDERS = ("packages/*/src", "plugins/*/src", "benchmarks", "tools", "examples", "docs")


def misnamed(tree):
    """The functions whose name promises a value, or none, and whose annotation says otherwise."""
    return [
        node.name
        for node in nodes_of(tree, ast.FunctionDef)
        if (node.name.lstrip("_").startswith("require_") and returns_value(node))
        or (node.name.lstrip("_").startswith("required_") and not returns_value(node))
        or (node.name.lstrip("_").startswith("check_") and only_raises(node))
    ]


def returns_value(function):
    """Whether the annotation of a function promises a value."""
    return function.returns is not None and ast.unparse(function.returns) not in (
        "None",
        "NoReturn",
    )


def only_raises(function):
    """Whether a function raises errors and returns nothing."""
    raises = any(isinstance(node, ast.Raise) for node in ast.walk(function))
    return raises and function.returns is not None and not returns_value(function)


def verdicts(tree):
    """The functions that return a verdict, but for the two that make a plain one."""
    for node in nodes_of(tree, ast.FunctionDef):
        match node:
            case ast.FunctionDef(name=name, returns=ast.Name(id="Verdict")):
                if name not in ("profitable_verdict", "unprofitable_verdict"):
                    yield name


def test_only_functions_named_required_return_a_value(root):
    by_path = {
        path.relative_to(root).as_posix(): misnamed(tree_of(path.read_text()))
        for folder in FOLDERS
        for path in root.glob(f"{folder}/**/*.py")
    }
    assert {path: names for path, names in by_path.items() if names} == {}


def test_a_function_that_returns_a_verdict_is_named_so(root):
    by_path = {
        name
        for path in root.glob("packages/schedule/src/**/*.py")
        for name in verdicts(tree_of(path.read_text()))
    }
    assert by_path != set()
    assert {name for name in by_path if not name.endswith("verdict")} == set()


def test_the_search_finds_all_kinds():
    text = """
def require_a() -> int: ...
def _required_b() -> None: ...
def require_c() -> None: ...
def check_d() -> None: raise E
def check_e() -> str: raise E
def f() -> Verdict: ...
"""
    assert misnamed(ast.parse(text)) == ["require_a", "_required_b", "check_d"]
    assert [*verdicts(ast.parse(text))] == ["f"]
